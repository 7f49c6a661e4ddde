package advert

import (
	"slices"
	"testing"
)

func TestCompress(t *testing.T) {
	for _, c := range []struct{ names, want []string }{
		{[]string{"pc1", "pc2", "pc3", "pc7"}, []string{"pc[1-3,7]"}},
		{[]string{"pc3", "x", "pc1"}, []string{"pc[1,3]", "x"}},
		{[]string{"pc098", "pc099", "pc100"}, []string{"pc[098-100]"}},
		{[]string{"pc9", "pc10", "pc11"}, []string{"pc[9-11]"}},
		{[]string{"a01", "a1", "a02", "a2"}, []string{"a[01-02]", "a[1-2]"}},
		{[]string{"r1-n1.example", "r1-n2.example", "r2-n1.example"}, []string{"r1-n[1-2].example", "r2-n1.example"}},
		{[]string{"eth0"}, []string{"eth0"}},
		{nil, nil},
	} {
		if got := compress(c.names); !slices.Equal(got, c.want) {
			t.Errorf("%q are written %q, want %q", c.names, got, c.want)
		}
	}
}
