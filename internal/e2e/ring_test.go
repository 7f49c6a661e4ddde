package e2e

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// BenchmarkRingThroughFrontDoor has a member ask for a ring of nodes and as many
// links of 100 Mbit/s with croft up, until users can log in to all, and give it
// back with croft delete, until nothing of it is on the machine. Each node has a
// disk and memory of its own.
func BenchmarkRingThroughFrontDoor(b *testing.B) {
	for _, count := range []int{50, 500} {
		b.Run(fmt.Sprintf("%d nodes", count), func(b *testing.B) {
			bed := newFederation(b, setting{"ways: both", "ways: gateway"})
			bed.write("inventory.yaml", fmt.Sprintf(`
authority: %s
sliver_types:
  - {name: ns, driver: namespace, cores: 0.1, memory: 64MiB, disk: 64MiB, shaping: true}
hosts:
  - {name: n1, sliver_types: [ns], cores: %d, memory: 64GiB, disk: 64GiB, shared: true}
`, authority, count))
			bed.start()
			bed.slice("ring")
			var wish strings.Builder
			for i := range count {
				fmt.Fprintf(&wish, `<node client_id="n%[1]d" exclusive="false"><sliver_type name="ns"/><interface client_id="n%[1]d:a"/><interface client_id="n%[1]d:b"/></node>`, i)
			}
			for i := range count {
				one, other := fmt.Sprintf("n%d:a", i), fmt.Sprintf("n%d:b", (i+1)%count)
				fmt.Fprintf(&wish, `<link client_id="l%d"><interface_ref client_id=%q/><interface_ref client_id=%q/>%s</link>`,
					i, one, other, shape(one, other, `capacity="100000"`))
			}
			file := bed.request(wish.String())
			run := func(args ...string) {
				ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
				defer cancel()
				cmd := exec.CommandContext(ctx, bed.bin, args...)
				cmd.Env = bed.environment()
				if r := runCommand(b, cmd, ""); r.status != 0 {
					b.Fatalf("croft %s: %s\n%s", args[0], r.err, bed.logTail())
				}
			}
			var ready, gone time.Duration
			for b.Loop() {
				begun := time.Now()
				run("up", "ring", file)
				ready += time.Since(begun)
				begun = time.Now()
				run("delete", "ring")
				bed.awaitNothing()
				gone += time.Since(begun)
			}
			b.ReportMetric(ready.Seconds()/float64(b.N), "s/ready")
			b.ReportMetric(gone.Seconds()/float64(b.N), "s/gone")
		})
	}
}
