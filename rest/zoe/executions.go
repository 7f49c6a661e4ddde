package zoe

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"croft/aggregate"
	"croft/languages/zapp"
	"croft/rest"
	"croft/urn"
)

// status is how far an execution is.
type status string

// The states of executions, as Zoe names them.
const (
	submitted  status = "submitted"
	queued     status = "queued"
	starting   status = "starting"
	running    status = "running"
	failed     status = "error"
	cleaning   status = "cleaning up"
	terminated status = "terminated"
)

func (s status) waits() bool { return s == submitted || s == queued }
func (s status) ended() bool { return s == failed || s == terminated }

// execution is a ZApp that was submitted. What it got is in the aggregate, as
// its slice.
type execution struct {
	ID           int64
	Name         string
	Account      string
	Member       urn.URN
	Keys         []string // of SSH
	User         int64    // the member's number
	Slice        urn.URN
	Application  json.RawMessage // as it was sent
	FirstService int64           // the number of its first instance; the others follow
	Submitted    time.Time
	Started      time.Time // zero if it did not yet
	Ended        time.Time
	Status       status
	Message      string // why it failed or ended
	Broken       bool   // it ends because it failed
	Logs         bool   // its records hold what its services wrote
	// Nodes are the services of an execution that this face has not made: it
	// has no ZApp.
	Nodes []node `json:",omitempty"`

	app *zapp.App
}

// Bounds of what is kept.
const (
	maxExecutions    = 20000
	maxExecutionsOwn = 2000
	maxName          = 128
)

// ids are the numbers that were given last. None is given twice.
type ids struct {
	Execution, Service, User int64
	Users                    map[string]int64 // by members
}

// Where the records are.
const (
	siteRecords, idsRecord = "site", "ids"
	executionRecords       = "executions"
	logRecords             = "logs"
)

func recordName(id int64) string { return fmt.Sprintf("n%d", id) }

// read reads the records.
func (f *Face) read() error {
	if err := f.Records.Get(siteRecords, idsRecord, &f.ids); err != nil && !errors.Is(err, rest.ErrNoRecord) {
		return err
	}
	if f.ids.Users == nil {
		f.ids.Users = map[string]int64{}
	}
	names, err := f.Records.List(executionRecords)
	if err != nil {
		return err
	}
	for _, name := range names {
		e := &execution{}
		if err := f.Records.Get(executionRecords, name, e); err != nil {
			return err
		}
		if e.derived() {
			e.app = &zapp.App{}
		} else if e.app, _, err = zapp.Parse(e.Application); err != nil {
			return fmt.Errorf("execution %d: %w", e.ID, err)
		}
		f.executions[e.ID] = e
	}
	return nil
}

// number is a member's number.
func (f *Face) number(member urn.URN) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name := member.Canonical().String()
	if n, ok := f.ids.Users[name]; ok {
		return n, nil
	}
	f.ids.User++
	f.ids.Users[name] = f.ids.User
	if err := f.Records.Put(siteRecords, idsRecord, &f.ids); err != nil {
		delete(f.ids.Users, name)
		return 0, err
	}
	return f.ids.User, nil
}

// save keeps an execution as it is; f.mu is held.
func (f *Face) save(e *execution) error {
	return f.Records.Put(executionRecords, recordName(e.ID), e)
}

// change changes an execution unless it has gone meanwhile.
func (f *Face) change(id int64, change func(*execution)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.executions[id]
	if e == nil {
		return nil
	}
	before := *e
	change(e)
	if err := f.save(e); err != nil {
		*e = before
		return err
	}
	return nil
}

// snapshot lists the executions that a condition is true of as they are now,
// in the order they came.
func (f *Face) snapshot(wanted func(*execution) bool) []*execution {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []*execution
	for _, e := range f.executions {
		if wanted(e) {
			own := *e
			list = append(list, &own)
		}
	}
	slices.SortFunc(list, func(a, b *execution) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// mine is an execution of the caller's, as it is now.
func (c *call) mine() (*execution, error) {
	id, err := c.numbered()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	e := c.executions[id]
	if e == nil || e.User != c.self {
		c.mu.Unlock()
		return nil, rest.Refuse(http.StatusNotFound, "No such execution: %d", id)
	}
	own := *e
	c.mu.Unlock()
	return &own, c.sees(&own)
}

// inputs are what an execution's environments may name.
func (e *execution) inputs(site urn.Authority) map[string]any {
	return map[string]any{
		"execution_id": fmt.Sprint(e.ID), "execution_name": e.Name, "user_name": e.Account, "deployment_name": string(site),
	}
}

// essentialOnly are inputs that ask for no elastic services.
func (f *Face) essentialOnly(e *execution) map[string]any {
	inputs := e.inputs(f.Service.Manager().Authority.Top())
	inputs["elastic"] = "false"
	return inputs
}

func (c *call) readZApp() (document []byte, err error) {
	document, err = rest.Body(c.r)
	if err == nil && len(document) > maxZApp {
		err = rest.Refuse(http.StatusRequestEntityTooLarge, "the ZApp is longer than %d bytes", maxZApp)
	}
	return document, err
}

// validate says whether a ZApp is right.
func (c *call) validate() error {
	document, err := c.readZApp()
	if err != nil {
		return err
	}
	if _, _, err := zapp.Parse(document); err != nil {
		return rest.Refuse(http.StatusBadRequest, "Invalid application description: %w", err)
	}
	return c.answer(http.StatusOK, map[string]string{"validation": "ok"})
}

// start submits an execution. What could never run here is refused at once.
func (c *call) start() error {
	body, err := c.readZApp()
	if err != nil {
		return err
	}
	var sent struct {
		Application json.RawMessage `json:"application"`
		Name        string          `json:"name"`
	}
	if err := json.Unmarshal(body, &sent); err != nil {
		return rest.Refuse(http.StatusBadRequest, "Error decoding JSON data: %w", err)
	}
	if sent.Name == "" || len(sent.Name) > maxName {
		return rest.Refuse(http.StatusBadRequest, "an execution has a name of at most %d bytes", maxName)
	}
	e := &execution{
		Name: sent.Name, Account: c.id.Account, Member: c.id.Member, Keys: c.id.Keys, User: c.self,
		Application: sent.Application, Submitted: c.Clock().UTC(), Status: submitted,
	}
	if e.app, _, err = zapp.Parse(e.Application); err != nil {
		return rest.Refuse(http.StatusBadRequest, "Invalid application description: %w", err)
	}
	e.Slice = urn.URN{Authority: c.authority(c.id), Type: urn.Slice, Name: "new"}
	_, err = c.Service.PlanWithout(c.ctx, c.principal(e), e.Slice, e.Application, aggregate.AllocateOptions{Inputs: c.essentialOnly(e)}, all)
	if err != nil && !later(err) || full(err) {
		return rest.Refuse(http.StatusBadRequest, "this cannot run here, even if nothing else did: %w", err)
	}
	if err := c.keep(e); err != nil {
		return err
	}
	c.Wake()
	return c.answer(http.StatusCreated, map[string]any{"execution_id": e.ID})
}

// keep gives an execution its numbers and keeps it.
func (c *call) keep(e *execution) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	own := 0
	for _, other := range c.executions {
		if other.User == e.User {
			own++
		}
	}
	if own >= maxExecutionsOwn || len(c.executions) >= maxExecutions {
		return rest.Refuse(http.StatusServiceUnavailable, "there are too many executions: delete some that have ended")
	}
	// The numbers come first: after a crash none is given again.
	next := c.ids
	next.Execution++
	e.ID, e.FirstService = next.Execution, next.Service+1
	next.Service += int64(len(e.app.Instances()))
	e.Slice.Name = fmt.Sprintf("execution-%d", e.ID)
	if err := c.Records.Put(siteRecords, idsRecord, &next); err != nil {
		return err
	}
	c.ids = next
	if err := c.save(e); err != nil {
		return err
	}
	c.executions[e.ID] = e
	return nil
}

// terminate ends an execution.
func (c *call) terminate() error {
	e, err := c.mine()
	if err != nil {
		return err
	}
	if e.Status.ended() {
		return rest.Refuse(http.StatusBadRequest, "Execution is not running")
	}
	err = c.change(e.ID, func(e *execution) {
		if !e.Status.ended() {
			e.Status = cleaning
		}
	})
	if err != nil {
		return err
	}
	c.Wake()
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// delete forgets an execution that has ended.
func (c *call) delete() error {
	e, err := c.mine()
	if err != nil {
		return err
	}
	if !e.Status.ended() {
		return rest.Refuse(http.StatusBadRequest, "Cannot delete an active execution: terminate it first")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.Logs {
		if err := c.Records.Delete(logRecords, recordName(e.ID)); err != nil {
			return err
		}
	}
	if err := c.Records.Delete(executionRecords, recordName(e.ID)); err != nil {
		return err
	}
	delete(c.executions, e.ID)
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}
