package config_test

import (
	"fmt"

	"croft/internal/config"
)

func ExampleParse() {
	c, err := config.Parse("croft.yaml", []byte(`
listen: 192.0.2.7:12369
leases: {max: 14d}
`), "/srv/croft")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.URL())
	fmt.Println(c.Leases.Max, c.Trusted)

	_, err = config.Parse("croft.yaml", []byte("# two weeks?\nleases: {max: soon}"), "/")
	fmt.Println(err)
	// Output:
	// https://192.0.2.7:12369/am/3.0
	// 14d /srv/croft/trusted
	// croft.yaml:2: "soon" is not a time span (such as 90s, 10m, 12h or 30d)
}
