package radl_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"croft/languages"
	"croft/languages/radl"
	"croft/urn"
)

// large is a document of many systems, each with a network, a recipe and
// machines of its own: 568 KB for 1,000.
func large(systems int) []byte {
	var b bytes.Buffer
	for i := range systems {
		fmt.Fprintf(&b, `network net%[1]d (outbound = 'no' and cidr = '10.%[2]d.%[3]d.0/24')
system node%[1]d (
  cpu.count >= 1 and
  cpu.count <= 4 and
  cpu.arch = 'x86_64' and
  memory.size >= 512M and
  net_interface.0.connection = 'net%[1]d' and
  net_interface.0.dns_name = 'node-%[1]d-#N#' and
  disk.0.os.name = 'linux' and
  disk.0.os.flavour = 'ubuntu' and
  disk.0.os.version >= '12.04' and
  disk.0.applications contains (name = 'tomcat' and version = '7.0') and
  soft 10 (memory.size >= 1G and cpu.count >= 2)
)
configure node%[1]d (
@begin
---
 - tasks:
   - shell: echo %[1]d
@end
)
deploy node%[1]d 2
`, i, i/256, i%256)
	}
	return b.Bytes()
}

func BenchmarkParse(b *testing.B) {
	for _, systems := range []int{100, 1000, 5000} {
		text := large(systems)
		b.Run(fmt.Sprint(systems), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := radl.Parse(text, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	text := large(1000)
	scope := languages.Scope{Managers: []urn.URN{urn.MustParse("urn:publicid:IDN+example.org+authority+cm")}}
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := (radl.Language{}).Compile(context.Background(), text, scope); err != nil {
			b.Fatal(err)
		}
	}
}
