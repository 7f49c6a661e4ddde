package im

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"mime"
	"net/http"
	"regexp"
	"slices"

	"croft/aggregate"
	"croft/languages"
	"croft/languages/radl"
	"croft/request"
	"croft/rest"
	"croft/slivers"
	"croft/urn"
)

// document reads the description of an infrastructure from the body of the
// request. A document without Content-Type is RADL in the text form.
func (c *call) document() ([]byte, languages.Language, error) {
	text, err := rest.Body(c.r)
	if err != nil {
		return nil, nil, err
	}
	kind := "text/plain"
	if header := c.r.Header.Get("Content-Type"); header != "" {
		if kind, _, err = mime.ParseMediaType(header); err != nil {
			return nil, nil, rest.Refuse(http.StatusUnsupportedMediaType, "the Content-Type is not one: want text/plain or text/radl, application/json, or text/yaml")
		}
	}
	isRADL := radl.Language{}.Detect(text) || radl.Empty(text)
	switch kind {
	case "text/plain", "text/radl", "application/json", "application/x-www-form-urlencoded", "application/octet-stream":
		// The documents of all kinds are told apart by what they say.
	case "text/yaml", "text/x-yaml", "application/yaml", "application/x-yaml", "application/zip":
		isRADL = false
	default:
		return nil, nil, rest.Refuse(http.StatusUnsupportedMediaType, "%.60q is not read here: want text/plain or text/radl, application/json, or text/yaml", kind)
	}
	if isRADL || kind == "text/plain" || kind == "application/json" {
		if l, ok := c.Service.Languages.ByMediaType(radl.MediaType); ok && (isRADL || !detected(c.Service.Languages, text)) {
			return text, l, nil
		}
	}
	l, err := c.Service.Languages.For(text)
	if err != nil {
		return nil, nil, &rest.Error{Status: http.StatusBadRequest, Err: err}
	}
	return text, l, nil
}

func detected(set languages.Set, text []byte) bool {
	_, err := set.For(text)
	return err == nil
}

// check reads RADL without asking for anything, and says how many machines it
// deploys.
func check(l languages.Language, text []byte, earlier []languages.Document) (machines bool, err error) {
	if l.MediaType() != radl.MediaType {
		return true, nil
	}
	d, _, err := radl.Parse(text, nil)
	if err != nil {
		return false, &rest.Error{Status: http.StatusBadRequest, Err: err}
	}
	for _, item := range d.Items {
		if deploy, ok := item.(*radl.Deploy); ok && deploy.Number.Num > 0 {
			return true, nil
		}
	}
	return false, nil
}

func (c *call) create() error {
	text, language, err := c.document()
	if err != nil {
		return err
	}
	id, err := c.newID()
	if err != nil {
		return err
	}
	unlock, err := c.locks.Lock(c.ctx, c.owner+"/"+id)
	if err != nil {
		return err
	}
	defer unlock()
	x := &infrastructure{slice: c.slice(id), live: map[urn.URN]aggregate.Outcome{}}
	x.record = record{ID: id, Created: c.Clock().UTC()}
	if c.yes("dry_run") {
		return c.dryRun(x, text, language)
	}
	// The record comes first: whatever happens, machines without one there are
	// none.
	if err := c.Records.Put(c.owner, id, &x.record); err != nil {
		return err
	}
	if err := c.launch(x, text, language); err != nil {
		return errors.Join(err, c.Records.Delete(c.owner, id))
	}
	c.w.Header().Set("InfID", id)
	if wants(c.r, uriList) == asJSON {
		c.w.Header().Set("Content-Type", "application/json")
		return json.NewEncoder(c.w).Encode(map[string]string{"uri": c.url(id)})
	}
	c.w.Header().Set("Content-Type", "text/uri-list")
	_, err = c.w.Write([]byte(c.url(id)))
	return err
}

// launch makes the machines that a document asks for. If that fails, it leaves
// nothing of them.
func (c *call) launch(x *infrastructure, text []byte, language languages.Language) error {
	some, err := check(language, text, x.documents())
	if err != nil {
		return err
	}
	// What became of a call is written down also when its caller has gone.
	ctx := context.WithoutCancel(c.ctx)
	options := aggregate.AllocateOptions{End: c.end(), Documents: x.documents()}
	if !some && language.Detect(text) {
		// It only defines: that has to be right, too.
		if _, err := c.Service.Plan(c.ctx, c.principal, x.slice, text, options); err != nil {
			return err
		}
	}
	if some {
		key, err := c.publicKey(x)
		if err != nil {
			return err
		}
		got, err := c.Service.Allocate(ctx, c.principal, x.slice, text, options)
		if err != nil {
			return err
		}
		target := aggregate.Target{Slice: x.slice}
		for _, v := range got.Slivers {
			target.Slivers = append(target.Slivers, v.URN)
		}
		_, err = c.Service.Provision(ctx, c.principal, target, aggregate.ProvisionOptions{Users: c.users(key), End: c.end(), Start: true, Version: got.Version})
		if err != nil {
			_, undo := c.Service.Delete(ctx, c.principal, target, true)
			return errors.Join(err, undo)
		}
		for _, w := range got.Warnings {
			x.Warnings = append(x.Warnings, w.String())
		}
	}
	x.Documents = append(x.Documents, documentRecord{MediaType: language.MediaType(), Text: text})
	own := *c
	own.ctx = ctx
	if err := own.refresh(x); err != nil {
		return err
	}
	return c.Records.Put(c.owner, x.ID, &x.record)
}

// users are those who can log in to the machines of an infrastructure.
func (c *call) users(key string) []request.User {
	return []request.User{{URN: c.id.Member, Keys: append([]string{key}, c.id.Keys...)}}
}

// dryRun answers with what a document would get, as an estimate of the costs
// of a cloud.
func (c *call) dryRun(x *infrastructure, text []byte, language languages.Language) error {
	type compute struct {
		Cores   float64 `json:"cpuCores"`
		Memory  int64   `json:"memoryInMegabytes"`
		Disk    int64   `json:"diskSizeInGigabytes,omitempty"`
		Name    string  `json:"publicIP,omitempty"`
		Machine string  `json:"name"`
	}
	list := []compute{}
	some, err := check(language, text, nil)
	if err != nil {
		return err
	}
	if some {
		planned, err := c.Service.Plan(c.ctx, c.principal, x.slice, text, aggregate.AllocateOptions{Documents: x.documents()})
		if err != nil {
			return err
		}
		for _, v := range planned.Slivers {
			if v.Kind == slivers.Node && v.Node != nil {
				a := v.Node.Capacity
				list = append(list, compute{Cores: float64(a.Cores) / 1000, Memory: int64(a.Memory), Disk: int64(a.Disk) / 1024, Machine: string(v.ClientID)})
			}
		}
	}
	manager := c.Service.Manager()
	c.w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(c.w).Encode(map[string]any{
		string(manager.Authority): map[string]any{
			"cloudType": "Croft", "cloudEndpoint": manager.String(), "compute": list, "storage": []any{},
		},
	})
}

func (c *call) extend() error {
	text, language, err := c.document()
	if err != nil {
		return err
	}
	x, unlock, err := c.open()
	if err != nil {
		return err
	}
	defer unlock()
	if x.derived() {
		return rest.Refuse(http.StatusConflict, "infrastructure %s was made by another interface of this site, as the slice %s: add to it there", x.ID, x.slice)
	}
	first := x.Next
	if err := c.launch(x, text, language); err != nil {
		return err
	}
	var added []string
	for _, m := range x.Machines {
		if m.Number >= first {
			added = append(added, c.machineURL(x, &m))
		}
	}
	c.uris(added, uriList)
	return nil
}

// maxFilter bounds the regular expressions that lists are filtered by.
const maxFilter = 1024

func (c *call) list() error {
	var filter *regexp.Regexp
	if text := c.r.URL.Query().Get("filter"); text != "" {
		var err error
		if len(text) > maxFilter {
			return rest.Refuse(http.StatusBadRequest, "the filter is longer than %d bytes", maxFilter)
		}
		if filter, err = regexp.Compile(text); err != nil {
			return rest.Refuse(http.StatusBadRequest, "the filter is no regular expression: %v", err)
		}
	}
	names, err := c.ids()
	if err != nil {
		return err
	}
	list := []string{}
	for _, id := range names {
		if filter != nil {
			x, unlock, err := c.openID(id)
			if rest.Status(err) == http.StatusNotFound {
				continue // destroyed meanwhile
			}
			if err != nil {
				return err
			}
			text, err := x.radl()
			unlock()
			if err != nil {
				return err
			}
			if !filter.MatchString(text) {
				continue
			}
		}
		list = append(list, c.url(id))
	}
	c.uris(list, asJSON)
	return nil
}

// ids names the caller's infrastructures: what this face has made, and what
// the other ways in have.
func (c *call) ids() ([]string, error) {
	held, err := c.id.Slices(c.ctx, c.Service)
	if err != nil {
		return nil, err
	}
	made, derived := map[string]bool{}, map[string]bool{}
	for _, h := range held {
		if c.native(h) {
			made[h.URN.Name] = true
		} else {
			derived[rest.DerivedID(h.URN)] = true
		}
	}
	recorded, err := c.Records.List(c.owner)
	if err != nil {
		return nil, err
	}
	var list []string
	for _, id := range recorded {
		if derived[id] {
			continue
		}
		if !made[id] {
			// It has no machines yet, or all that it had have gone.
			_, unlock, err := c.openID(id)
			if rest.Status(err) == http.StatusNotFound {
				continue
			}
			if err != nil {
				return nil, err
			}
			unlock()
		}
		list = append(list, id)
	}
	list = slices.AppendSeq(list, maps.Keys(derived))
	slices.Sort(list)
	return list, nil
}

func (c *call) destroy() error {
	x, unlock, err := c.open()
	if err != nil {
		return err
	}
	defer unlock()
	_, err = c.Service.Delete(context.WithoutCancel(c.ctx), c.principal, aggregate.Target{Slice: x.slice}, true)
	var refused *aggregate.Error
	if errors.As(err, &refused) && refused.Kind == aggregate.NotFound {
		err = nil // it has no machines any more
	}
	if err != nil {
		return err
	}
	if err := c.Records.Delete(c.owner, x.ID); err != nil {
		return err
	}
	return c.done()
}
