package camp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"

	"croft/rest"
)

// selected are the attributes that the parameter SelectAttr names; nil for
// all.
func (c *call) selected(r *resource) ([]string, error) {
	values, given := c.r.URL.Query()["SelectAttr"]
	if !given {
		return nil, nil
	}
	list := []string{}
	for _, v := range values {
		for _, name := range strings.Split(v, ",") {
			name = strings.TrimSpace(name)
			if _, known := r.typ.attribute(name); !known {
				return nil, refuseAttribute(http.StatusBadRequest, name, "resources of the type %s have none of this name", r.typ.typ)
			}
			list = append(list, name)
		}
	}
	return list, nil
}

func (c *call) get(r *resource) error {
	names, err := c.selected(r)
	if err != nil {
		return err
	}
	c.json(c.w, c.r, http.StatusOK, part(r.attributes, names))
	return nil
}

// part is a representation with some of its attributes; nil is all.
func part(all map[string]any, names []string) map[string]any {
	if names == nil {
		return all
	}
	some := map[string]any{}
	for _, n := range names {
		if v, ok := all[n]; ok {
			some[n] = v
		}
	}
	return some
}

// unchanged refuses a request that was made of another state of the resource
// than it is in.
func (c *call) unchanged(r *resource, names []string) error {
	header := c.r.Header.Get("If-Match")
	if header == "" {
		return nil
	}
	// The tag may be of all attributes or of those that are selected.
	for _, shown := range []map[string]any{r.attributes, part(r.attributes, names)} {
		text, err := json.Marshal(shown)
		if err != nil {
			return err
		}
		if matches(header, tag(text)) {
			return nil
		}
	}
	return rest.Refuse(http.StatusPreconditionFailed, "the resource has changed: get it again")
}

func (c *call) put(r *resource) error {
	names, err := c.selected(r)
	if err != nil {
		return err
	}
	if err := c.unchanged(r, names); err != nil {
		return err
	}
	body, err := rest.Body(c.r)
	if err != nil {
		return err
	}
	given, err := object(body)
	if err != nil {
		return err
	}
	wanted := given
	if names != nil {
		for name := range given {
			if !slices.Contains(names, name) {
				return refuseAttribute(http.StatusBadRequest, name, "it is not among those of SelectAttr")
			}
		}
		if wanted, err = generic(r.attributes); err != nil {
			return err
		}
		for _, name := range names {
			if v, ok := given[name]; ok {
				wanted[name] = v
			} else {
				delete(wanted, name)
			}
		}
	}
	return c.replace(r, wanted, names)
}

// maxPatch bounds the operations of a patch.
const maxPatch = 1000

func (c *call) patch(r *resource) error {
	kind, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json-patch" && kind != "application/json-patch+json" {
		c.w.Header().Set("Accept-Patch", "application/json-patch, application/json-patch+json")
		return rest.Refuse(http.StatusUnsupportedMediaType, "patches are application/json-patch or application/json-patch+json")
	}
	if err := c.unchanged(r, nil); err != nil {
		return err
	}
	body, err := rest.Body(c.r)
	if err != nil {
		return err
	}
	patch, err := jsonpatch.DecodePatch(body)
	if err != nil {
		return rest.Refuse(http.StatusBadRequest, "this is no JSON Patch: %v", err)
	}
	if len(patch) > maxPatch {
		return rest.Refuse(http.StatusBadRequest, "the patch has %d operations: at most %d", len(patch), maxPatch)
	}
	now, err := json.Marshal(r.attributes)
	if err != nil {
		return err
	}
	after, err := apply(patch, now)
	switch {
	case errors.Is(err, jsonpatch.ErrTestFailed):
		return rest.Refuse(http.StatusConflict, "a test of the patch failed: %v", err)
	case err != nil:
		return rest.Refuse(http.StatusBadRequest, "the patch cannot be applied: %v", err)
	}
	wanted, err := object(after)
	if err != nil {
		return err
	}
	return c.replace(r, wanted, nil)
}

// apply applies a patch. The library is meant for well-formed patches; what it
// does not expect must not end the call.
func apply(patch jsonpatch.Patch, to []byte) (after []byte, err error) {
	defer func() {
		if e := recover(); e != nil {
			err = fmt.Errorf("operations that make no sense: %v", e)
		}
	}()
	options := jsonpatch.NewApplyOptions()
	options.AccumulatedCopySizeLimit = 1 << 20
	options.SupportNegativeIndices = false
	return patch.ApplyWithOptions(to, options)
}

// object reads a JSON object.
func object(text []byte) (map[string]any, error) {
	var o map[string]any
	d := json.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&o); err != nil || o == nil || d.More() {
		return nil, rest.Refuse(http.StatusBadRequest, "the body is not one JSON object")
	}
	return o, nil
}

// generic is a representation as a client reads it.
func generic(attributes map[string]any) (map[string]any, error) {
	text, err := json.Marshal(attributes)
	if err != nil {
		return nil, err
	}
	return object(text)
}

// replace makes the attributes of a resource those that are wanted, as far as
// clients may change them.
func (c *call) replace(r *resource, wanted map[string]any, names []string) error {
	now, err := generic(r.attributes)
	if err != nil {
		return err
	}
	changes := map[string]any{}
	for name, v := range wanted {
		a, known := r.typ.attribute(name)
		if !known {
			return refuseAttribute(http.StatusBadRequest, name, "resources of the type %s have none of this name", r.typ.typ)
		}
		if reflect.DeepEqual(v, now[name]) {
			continue
		}
		if !a.mutable || !a.consumerMutable {
			return refuseAttribute(http.StatusForbidden, name, "clients cannot change it")
		}
		if err := fits(a, v); err != nil {
			return err
		}
		changes[name] = v
	}
	for name := range now {
		if _, kept := wanted[name]; kept {
			continue
		}
		a, _ := r.typ.attribute(name)
		if !a.mutable || !a.consumerMutable {
			return refuseAttribute(http.StatusForbidden, name, "clients cannot delete it")
		}
		if a.required {
			return refuseAttribute(http.StatusBadRequest, name, "it is required")
		}
		changes[name] = nil
	}
	if len(changes) > 0 {
		if err := c.keep(r.path, changes); err != nil {
			return err
		}
	}
	after, err := c.find(r.path)
	if err != nil {
		return err
	}
	c.json(c.w, c.r, http.StatusOK, part(after.attributes, names))
	return nil
}

// maxText bounds what clients write into a resource.
const maxText = 16 << 10

// fits checks the value of an attribute that a client changes.
func fits(a attribute, v any) error {
	text, err := json.Marshal(v)
	if err != nil || len(text) > maxText {
		return refuseAttribute(http.StatusBadRequest, a.name, "it is longer than %d bytes", maxText)
	}
	isLink := func(v any) bool {
		o, ok := v.(map[string]any)
		href, hasHref := o["href"].(string)
		_, hasName := o["targetName"].(string)
		return ok && hasHref && hasName && href != ""
	}
	all := func(v any, is func(any) bool) bool {
		list, ok := v.([]any)
		return ok && !slices.ContainsFunc(list, func(x any) bool { return !is(x) })
	}
	isString := func(v any) bool { _, ok := v.(string); return ok }
	ok := true
	switch a.kind {
	case kindString:
		ok = isString(v) && (!a.required || v != "")
	case kindStrings:
		ok = all(v, isString)
	case kindLink:
		ok = isLink(v)
	case kindLinks:
		ok = all(v, isLink)
	}
	if !ok {
		return refuseAttribute(http.StatusBadRequest, a.name, "the value is no %s", a.kind)
	}
	return nil
}

// edits are what clients have changed of resources: by path, attributes and
// their values, null for those that were deleted.
type edits map[string]map[string]any

// edits reads the caller's.
func (c *call) edits() (edits, error) {
	all := edits{}
	err := c.Records.Get(c.owner, "edits", &all)
	if err != nil && !errors.Is(err, rest.ErrNoRecord) {
		return nil, err
	}
	return all, nil
}

// keep writes changes of a resource down.
func (c *call) keep(path string, changes map[string]any) error {
	all, err := c.edits()
	if err != nil {
		return err
	}
	if all[path] == nil {
		all[path] = map[string]any{}
	}
	for name, v := range changes {
		all[path][name] = v
	}
	return c.Records.Put(c.owner, "edits", all)
}

// drop forgets the changes of a resource and of those below it.
func (c *call) drop(paths ...string) error {
	all, err := c.edits()
	if err != nil {
		return err
	}
	before := len(all)
	for path := range all {
		for _, p := range paths {
			if path == p || strings.HasPrefix(path, p+"/") {
				delete(all, path)
			}
		}
	}
	if len(all) == before {
		return nil
	}
	return c.Records.Put(c.owner, "edits", all)
}
