package aggregate

import (
	"fmt"

	"croft/drivers"
	"croft/mapping"
	"croft/request"
	"croft/slivers"
)

// checkShape refuses a link whose driver cannot keep to its shape. Of a link
// that takes its rate as a wish, the rate is given up instead.
func (s *Service) checkShape(l *request.Link, v *slivers.Sliver) error {
	d, err := s.driver(v)
	if err != nil {
		return err
	}
	err = drivers.Shapes(d, driverLink(v))
	if err != nil && l.BestEffort {
		for i := range v.Link.Ends {
			v.Link.Ends[i].Out.Capacity, v.Link.Ends[i].In.Capacity = 0, 0
		}
		err = drivers.Shapes(d, driverLink(v))
	}
	if err == nil {
		return nil
	}
	kind := mapping.Unavailable
	for _, e := range v.Link.Ends {
		if e.Out != (request.Shape{}) || e.In != (request.Shape{}) {
			kind = mapping.Bandwidth
		}
	}
	place := l.Place
	if len(l.Properties) > 0 && l.Properties[0].Place != (request.Place{}) {
		place = l.Properties[0].Place
	}
	return &mapping.Refusal{Kind: kind, Item: l.ID, Place: place, Why: fmt.Sprintf("the link cannot be made as asked for: %v", err)}
}
