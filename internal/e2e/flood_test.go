package e2e

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"testing"
	"time"
)

// loginBound is what a login through the gateway may take while another slice
// does its worst, on a machine that does nothing else.
const loginBound = 3 * time.Second

// BenchmarkLoginsUnderFlood measures logins through the SSH gateway, each a new
// connection of the stock client that runs true, while another slice, which has
// all cores that the machine has, floods a link that the kernel shapes and one
// that a relay does, and keeps its processors busy.
func BenchmarkLoginsUnderFlood(b *testing.B) {
	need(b, "ssh", "iperf3")
	bed := newFederation(b)
	bed.write("inventory.yaml", fmt.Sprintf(`
authority: %s
sliver_types:
  - {name: small, driver: namespace, cores: 0.1, memory: 256MiB, disk: 64MiB, shaping: true}
  - {name: large, driver: namespace, cores: %g, memory: 512MiB, disk: 64MiB, shaping: true}
hosts:
  - {name: n1, sliver_types: [small, large], cores: %d, memory: 8GiB, disk: 64GiB, shared: true}
`, authority, float64(runtime.NumCPU())/2, runtime.NumCPU()+1))
	bed.start()
	quiet := bed.slice("quiet")
	bed.must("up", "quiet", bed.request(`<node client_id="calm" exclusive="false"><sliver_type name="small"/></node>`))
	bed.slice("loud")
	bed.must("up", "loud", bed.request(linkRequest([][3]string{{"a", "large", "n1"}, {"b", "large", "n1"}}, []linkWish{
		{nodes: "a b", more: shape("a:if1", "b:if1", `capacity="1000000"`)},
		{nodes: "a b", more: shape("a:if2", "b:if2", `capacity="200000" latency="5"`)},
	})))
	j := bed.jumper("alice", quiet, "calm")
	name := j.node.Proxies[0].For.Host
	measure := func(b *testing.B) {
		var took []time.Duration
		for b.Loop() {
			begun := time.Now()
			if r := j.jump(name, "true"); r.status != 0 {
				b.Fatalf("login: %+v\n%s", r, bed.logTail())
			}
			took = append(took, time.Since(begun))
		}
		slices.Sort(took)
		b.ReportMetric(took[len(took)/2].Seconds()*1000, "ms/median")
		b.ReportMetric(took[len(took)-1].Seconds()*1000, "ms/longest")
		if most := took[len(took)-1]; most > loginBound {
			b.Errorf("a login took %s, may take %s", most, loginBound)
		}
	}
	b.Run("quiet", measure)
	b.Run("flood", func(b *testing.B) {
		const long = "120"
		burn := fmt.Sprintf("for i in $(seq %d); do timeout %s sh -c 'while :; do :; done' & done; ", 2*runtime.NumCPU(), long)
		ctx, stop := context.WithCancel(context.Background())
		var all []*exec.Cmd
		defer func() {
			stop()
			for _, c := range all {
				_ = c.Wait()
			}
		}()
		start := func(node, command string) {
			c := exec.CommandContext(ctx, bed.bin, "ssh", "loud", node, "--", command)
			c.Env = bed.environment()
			if err := c.Start(); err != nil {
				b.Fatal(err)
			}
			all = append(all, c)
		}
		start("b", "iperf3 -s -D -p 5201; iperf3 -s -D -p 5202; "+burn+"wait")
		bed.await("the servers of the flood", func() bool {
			return bed.croft("ssh", "loud", "b", "--", "ss -ltn | grep -q 5201 && ss -ltn | grep -q 5202").status == 0
		})
		start("a", burn+"iperf3 -c 10.1.1.2 -p 5201 -P 4 -t "+long+" & iperf3 -c 10.1.2.2 -p 5202 -P 4 -t "+long+" & wait")
		bed.await("the flood", func() bool {
			return bed.croft("ssh", "loud", "b", "--", `test "$(cat /sys/class/net/eth1/statistics/rx_bytes)" -gt 20000000 && test "$(cat /sys/class/net/eth2/statistics/rx_bytes)" -gt 5000000`).status == 0
		})
		measure(b)
	})
	bed.must("delete", "loud")
	bed.must("delete", "quiet")
	bed.awaitNothing()
}

// shape asks for both directions of a link of two ends.
func shape(one, other, wish string) string {
	return fmt.Sprintf(`<property source_id=%[1]q dest_id=%[2]q %[3]s/><property source_id=%[2]q dest_id=%[1]q %[3]s/>`, one, other, wish)
}
