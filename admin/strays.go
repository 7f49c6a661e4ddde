package admin

import (
	"context"
	"time"

	"croft/aggregate"
	"croft/urn"
)

// Stray is a host that the inventory does not have any more, or that has shrunk
// in it, under nodes that keep it until their leases end.
type Stray struct {
	Host    urn.URN   `json:"host"`
	Why     string    `json:"why"`
	Until   time.Time `json:"until"` // when the last of the leases ends
	Slivers []Sliver  `json:"slivers"`
}

func strayOf(s aggregate.Stray) Stray {
	return Stray{Host: s.Host, Why: s.Why, Until: s.Until(), Slivers: convert(s.Slivers, sliverOf)}
}

// Strays lists the hosts that hold more than the inventory gives them.
func (c *Client) Strays(ctx context.Context) (list []Stray, err error) {
	err = c.get(ctx, "strays", urn.URN{}, &list)
	return list, err
}
