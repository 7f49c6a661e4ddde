package zoe

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"croft/aggregate"
	"croft/rest"
	"croft/slivers"
)

// executionView is an execution as clients read it. Times are seconds since
// 1970.
type executionView struct {
	ID          int64           `json:"id"`
	User        int64           `json:"user_id"`
	Name        string          `json:"name"`
	Description json.RawMessage `json:"description"`
	Submitted   *float64        `json:"time_submit"`
	Started     *float64        `json:"time_start"`
	Ended       *float64        `json:"time_end"`
	Status      status          `json:"status"`
	Message     *string         `json:"error_message"`
	Services    []int64         `json:"services"`
	Size        float64         `json:"size"`
	Slice       string          `json:"slice"`                 // its URN: Croft's own addition
	Expires     *float64        `json:"time_expire,omitempty"` // that, too: of the execution alone, not in lists
}

func seconds(t time.Time) *float64 {
	if t.IsZero() {
		return nil
	}
	s := float64(t.UnixMicro()) / 1e6
	return &s
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func (e *execution) view() executionView {
	v := executionView{
		ID: e.ID, User: e.User, Name: e.Name, Description: e.Application, Submitted: seconds(e.Submitted), Started: seconds(e.Started),
		Ended: seconds(e.Ended), Status: e.Status, Message: orNull(e.Message), Services: []int64{}, Size: float64(e.app.Size), Slice: e.Slice.String(),
	}
	for _, i := range e.instances() {
		v.Services = append(v.Services, i.id)
	}
	return v
}

// list tells the caller's executions, by their numbers.
func (c *call) list() error {
	wanted, limit, err := c.filter(c.r.URL.Query())
	if err != nil {
		return err
	}
	if err := c.adopt(); err != nil {
		return err
	}
	list := c.snapshot(wanted)
	if limit > 0 && len(list) > limit { // the latest ones
		list = list[len(list)-limit:]
	}
	views := map[string]executionView{}
	for _, e := range list {
		views[strconv.FormatInt(e.ID, 10)] = e.view()
	}
	return c.answer(http.StatusOK, views)
}

// filter reads what a list is to have.
func (c *call) filter(q url.Values) (wanted func(*execution) bool, limit int, err error) {
	tests := []func(*execution) bool{func(e *execution) bool { return e.User == c.self }}
	number := func(name string) (float64, bool) {
		text := q.Get(name)
		if text == "" {
			return 0, false
		}
		n, wrong := strconv.ParseFloat(text, 64)
		if wrong != nil {
			err = rest.Refuse(http.StatusBadRequest, "the filter %s is %q, a number is wanted", name, text)
		}
		return n, true
	}
	if s := q.Get("status"); s != "" {
		if s == "scheduled" { // so 2017.03 calls it
			s = string(queued)
		}
		tests = append(tests, func(e *execution) bool { return string(e.Status) == s })
	}
	if name := q.Get("name"); name != "" {
		tests = append(tests, func(e *execution) bool { return e.Name == name })
	}
	if n, ok := number("user_id"); ok {
		tests = append(tests, func(e *execution) bool { return float64(e.User) == n })
	}
	for suffix, of := range map[string]func(*execution) time.Time{
		"submit": func(e *execution) time.Time { return e.Submitted },
		"start":  func(e *execution) time.Time { return e.Started },
		"end":    func(e *execution) time.Time { return e.Ended },
	} {
		if n, ok := number("earlier_than_" + suffix); ok {
			tests = append(tests, func(e *execution) bool { s := seconds(of(e)); return s != nil && *s <= n })
		}
		if n, ok := number("later_than_" + suffix); ok {
			tests = append(tests, func(e *execution) bool { s := seconds(of(e)); return s != nil && *s >= n })
		}
	}
	if n, ok := number("limit"); ok {
		limit = int(min(max(n, 0), maxExecutions))
	}
	return func(e *execution) bool {
		return !slices.ContainsFunc(tests, func(t func(*execution) bool) bool { return !t(e) })
	}, limit, err
}

func (c *call) show() error {
	e, err := c.mine()
	if err != nil {
		return err
	}
	view := e.view()
	held, err := c.Service.Slivers(c.ctx, e.Slice)
	if err != nil && !missing(err) {
		return err
	}
	for _, v := range held {
		if end := seconds(v.Expires); v.Allocation != slivers.Unallocated && (view.Expires == nil || *end < *view.Expires) {
			view.Expires = end
		}
	}
	return c.answer(http.StatusOK, view)
}

// outcomes are the slivers of an execution by the names of its nodes; none if
// it has none.
func (c *call) outcomes(e *execution) (map[string]aggregate.Outcome, error) {
	list, err := c.Service.Status(c.ctx, c.principal(e), aggregate.Target{Slice: e.Slice}, true)
	if err != nil && !missing(err) {
		return nil, err
	}
	nodes := map[string]aggregate.Outcome{}
	for _, o := range list {
		if o.Sliver.Node != nil {
			nodes[string(o.Sliver.ClientID)] = o
		}
	}
	return nodes, nil
}

func missing(err error) bool {
	var refused *aggregate.Error
	return errors.As(err, &refused) && refused.Kind == aggregate.NotFound || errors.Is(err, slivers.ErrNotFound)
}

// endpoints lists the ports that are reached from outside.
func (c *call) endpoints() error {
	e, err := c.mine()
	if err != nil {
		return err
	}
	nodes, err := c.outcomes(e)
	if err != nil {
		return err
	}
	list := [][]any{}
	for _, i := range e.instances() {
		o, ok := nodes[string(i.Node)]
		if !ok {
			continue
		}
		for _, p := range o.Sliver.Node.Ports {
			if link := p.Link(); link != "" {
				list = append(list, []any{p.Name + " (" + string(i.Node) + ")", link, nil})
			}
		}
	}
	return c.answer(http.StatusOK, map[string]any{"endpoints": list})
}

// instance finds a service of the caller's by its number.
func (c *call) instance() (*execution, instance, error) {
	id, err := c.numbered()
	if err != nil {
		return nil, instance{}, err
	}
	for _, e := range c.snapshot(func(e *execution) bool { return e.User == c.self }) {
		for _, i := range e.instances() {
			if i.id == id {
				return e, i, c.sees(e)
			}
		}
	}
	return nil, instance{}, rest.Refuse(http.StatusNotFound, "No such service: %d", id)
}

// The states of services, and of what is behind them, as Zoe names them.
const (
	serviceCreated     = "created"
	serviceRunnable    = "runnable" // elastic, and there is no room
	serviceStarting    = "starting"
	serviceActive      = "active"
	serviceFailed      = "error"
	serviceInactive    = "inactive"
	serviceTerminating = "terminating"

	backendUndefined = "undefined"
	backendCreated   = "created"
	backendStarted   = "started"
	backendDead      = "dead"
	backendDestroyed = "destroyed"
)

func (c *call) service() error {
	e, i, err := c.instance()
	if err != nil {
		return err
	}
	nodes, err := c.outcomes(e)
	if err != nil {
		return err
	}
	description, err := e.description(i)
	if err != nil {
		return err
	}
	view := map[string]any{
		"id": i.id, "name": string(i.Node), "status": serviceCreated, "backend_status": backendUndefined, "error_message": nil,
		"execution_id": e.ID, "description": description, "service_group": i.Service.Name, "backend_id": nil, "ip_address": nil,
		"backend_host": nil, "essential": i.Essential, "proxy_address": nil, "restart_count": 0,
	}
	o, there := nodes[string(i.Node)]
	switch {
	case there:
		state, behind, message := serviceState(o)
		if e.Status == cleaning {
			state = serviceTerminating
		}
		view["status"], view["backend_status"], view["error_message"] = state, behind, orNull(message)
		view["backend_id"], view["backend_host"] = o.Sliver.URN.String(), o.Sliver.Node.HostName
		if ifs := o.Sliver.Node.Interfaces; len(ifs) > 0 && len(ifs[0].Addresses) > 0 {
			view["ip_address"] = ifs[0].Addresses[0].Addr().String()
		}
	case e.Status.ended() || e.Status == cleaning:
		view["status"], view["backend_status"] = serviceInactive, backendDestroyed
	case !i.Essential && !e.Status.waits():
		view["status"] = serviceRunnable
	}
	return c.answer(http.StatusOK, view)
}

// serviceState is how a service is whose node is there.
func serviceState(o aggregate.Outcome) (state, behind, message string) {
	switch o.Sliver.Operational {
	case slivers.Failed:
		return serviceFailed, backendDead, o.Sliver.Fault
	case slivers.PendingAllocation, slivers.Configuring:
		return serviceStarting, backendCreated, ""
	}
	for _, s := range o.Startup {
		switch s.State {
		case slivers.StepFailed, slivers.StepSkipped:
			return serviceFailed, backendDead, s.Reason
		case slivers.StepDone:
			return serviceActive, backendStarted, ""
		}
	}
	return serviceStarting, backendCreated, ""
}

// description is a service as its ZApp has it. Clients of 2017.03 read the path
// of every port.
func (e *execution) description(i instance) (map[string]any, error) {
	var app struct {
		Services []map[string]any `json:"services"`
	}
	if err := json.Unmarshal(e.Application, &app); err != nil {
		return nil, err
	}
	for _, s := range app.Services {
		if s["name"] != i.Service.Name {
			continue
		}
		ports, _ := s["ports"].([]any)
		for _, p := range ports {
			if port, ok := p.(map[string]any); ok && port["path"] == nil {
				port["path"] = ""
			}
		}
		return s, nil
	}
	return nil, rest.Refuse(http.StatusNotFound, "the ZApp has no service %s", i.Service.Name)
}

// statistics tells how long the queues are, and what of the caller's is in
// them.
func (c *call) statistics() error {
	if err := c.adopt(); err != nil {
		return err
	}
	length, own := map[string]int{}, map[string][]int64{"queue": {}, "running": {}, "termination": {}}
	for _, e := range c.order(c.snapshot(func(e *execution) bool { return !e.Status.ended() })) {
		queue := "running"
		switch {
		case e.Status.waits():
			queue = "queue"
		case e.Status == cleaning:
			queue = "termination"
		}
		length[queue]++
		if e.User == c.self {
			own[queue] = append(own[queue], e.ID)
		}
	}
	return c.answer(http.StatusOK, map[string]any{
		"queue_length": length["queue"], "running_length": length["running"], "termination_queue_length": length["termination"],
		"termination_threads_count": length["termination"],
		"queue":                     own["queue"], "running_queue": own["running"], "termination_queue": own["termination"],
	})
}
