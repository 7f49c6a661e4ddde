package capacity_test

import (
	"fmt"
	"testing"

	"croft/capacity"
)

func TestFits(t *testing.T) {
	host := capacity.Amount{Cores: 2 * capacity.Core, Memory: 4 * capacity.GiB, Disk: 10 * capacity.GiB}
	for _, test := range []struct {
		name string
		want capacity.Amount
		fits bool
	}{
		{"nothing", capacity.Amount{}, true},
		{"all of it", host, true},
		{"a little more memory", capacity.Amount{Memory: 4*capacity.GiB + 1}, false},
		{"more cores only", capacity.Amount{Cores: 2*capacity.Core + 1}, false},
		{"more disk only", capacity.Amount{Disk: 11 * capacity.GiB}, false},
	} {
		if got := test.want.Fits(host); got != test.fits {
			t.Errorf("%s: %v, want %v", test.name, got, test.fits)
		}
	}
	part := capacity.Amount{Cores: 500, Memory: 256}
	if got := host.Minus(part).Plus(part); got != host {
		t.Errorf("taking and giving back leaves %v", got)
	}
}

func ExampleAmount_Or() {
	asked := capacity.Amount{Memory: 2 * capacity.GiB}
	usual := capacity.Amount{Cores: 500, Memory: 256, Disk: 512}
	fmt.Println(asked.Or(usual))
	// Output: 0.5 cores, 2048 MiB memory, 512 MiB disk
}
