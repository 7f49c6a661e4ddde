package camp

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"croft/aggregate"
	"croft/languages"
	"croft/languages/archive"
	"croft/languages/camp"
	"croft/languages/camp/pdp"
	"croft/mapping"
	"croft/request"
	"croft/rest"
)

// packageRecord is a package that was uploaded.
type packageRecord struct {
	Data    []byte
	Created time.Time
}

// templateRecord is a deployed application: the plan or package it came as.
type templateRecord struct {
	Document []byte
	Created  time.Time
}

// template is a deployed application as it is understood.
type template struct {
	templateRecord
	Plan    *camp.Plan
	request *request.Request
}

// most bounds the packages, templates and assemblies of a member, each.
const most = 200

func (c *call) newID() (string, error) {
	var b [10]byte
	if _, err := io.ReadFull(c.Random, b[:]); err != nil {
		return "", fmt.Errorf("drawing a name: %w", err)
	}
	return strings.ToLower(base32.StdEncoding.EncodeToString(b[:])), nil
}

// room refuses another thing of a kind where there are too many.
func (c *call) room(kind string) error {
	if len(c.names(kind)) >= most {
		return rest.Refuse(http.StatusServiceUnavailable, "there are %d of your %ss already: delete some", most, kind)
	}
	return nil
}

func (c *call) template(id string) (*template, error) {
	t := &template{}
	if err := c.Records.Get(c.owner, "template-"+id, &t.templateRecord); err != nil {
		return nil, err
	}
	var err error
	t.Plan, t.request, err = c.understand(t.Document)
	return t, err
}

// understand reads a plan or package.
func (c *call) understand(document []byte) (*camp.Plan, *request.Request, error) {
	plan, err := camp.Open(document)
	if err != nil {
		return nil, nil, err
	}
	compiled, err := camp.Language{}.Compile(c.ctx, document, languages.Scope{Managers: c.Service.Inventory().Managers()})
	if err != nil {
		return nil, nil, err
	}
	return plan, compiled.Request, nil
}

// isPlan are the media types of plans and packages.
func isPlan(kind string) bool {
	return slices.Contains([]string{"application/x-tar", "application/tar", "application/gzip", "application/x-gzip", "application/x-gtar", "application/x-tgz",
		"application/zip", "application/x-zip-compressed", "application/octet-stream", "application/x-yaml", "application/yaml", "text/yaml", "text/x-yaml"}, kind)
}

// sent reads a plan or package from the body of the request.
func (c *call) sent() (document []byte, isJSON bool, err error) {
	kind, parameters, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if err != nil {
		return nil, false, rest.Refuse(http.StatusUnsupportedMediaType, "the Content-Type is not one")
	}
	body, err := rest.Body(c.r)
	switch {
	case err != nil:
		return nil, false, err
	case kind == "application/json":
		return body, true, nil
	case kind == "multipart/form-data":
		form := multipart.NewReader(bytes.NewReader(body), parameters["boundary"])
		for range 100 {
			p, err := form.NextPart()
			if err != nil {
				return nil, false, rest.Refuse(http.StatusBadRequest, "the form has no pdp_file and no plan_file")
			}
			if name := p.FormName(); name == "pdp_file" || name == "plan_file" {
				document, err := io.ReadAll(p)
				return document, false, err
			}
		}
		return nil, false, rest.Refuse(http.StatusBadRequest, "the form has too many parts")
	case isPlan(kind):
		return body, false, nil
	}
	return nil, false, rest.Refuse(http.StatusUnsupportedMediaType, "%.60q is no plan or package: want application/x-tar, application/gzip, application/zip or application/x-yaml", kind)
}

// upload keeps a package under a URI of the platform's own.
func (c *call) upload() error {
	document, isJSON, err := c.sent()
	if err != nil {
		return err
	}
	if isJSON {
		return rest.Refuse(http.StatusUnsupportedMediaType, "a package is a tar, a tar.gz or a zip")
	}
	if err := c.room("package"); err != nil {
		return err
	}
	if _, err := pdp.Open(document); err != nil {
		return &rest.Error{Status: http.StatusBadRequest, Err: err}
	}
	id, err := c.newID()
	if err == nil {
		err = c.Records.Put(c.owner, "package-"+id, &packageRecord{document, c.Clock().UTC()})
	}
	if err != nil {
		return err
	}
	return c.made("packages/" + id)
}

// made answers that a resource was created.
func (c *call) made(path string) error {
	r, err := c.find(path)
	if err != nil {
		return err
	}
	c.w.Header().Set("Location", c.url(c.r, path))
	c.json(c.w, c.r, http.StatusCreated, r.attributes)
	return nil
}

func (c *call) packageResource(id string) (*resource, error) {
	var p packageRecord
	if err := c.Records.Get(c.owner, "package-"+id, &p); err != nil {
		return nil, err
	}
	open, err := pdp.Open(p.Data)
	if err != nil {
		return nil, err
	}
	r, err := c.make("packages/"+id, "org.testbed:package", id, "", p.Created, map[string]any{
		"org.testbed:size": len(p.Data), "org.testbed:planName": open.PlanName})
	if err == nil {
		r.pack = &p
	}
	return r, err
}

// download gives the bytes of a package.
func (c *call) download(id string) error {
	var p packageRecord
	if err := c.Records.Get(c.owner, "package-"+id, &p); err != nil {
		return err
	}
	c.w.Header().Set("Content-Type", "application/octet-stream")
	c.w.Header().Set("ETag", tag(p.Data))
	_, _ = c.w.Write(p.Data)
	return nil
}

// register makes an assembly template of a package: one that the body names,
// or the body itself.
func (c *call) register() error {
	document, isJSON, err := c.sent()
	if err != nil {
		return err
	}
	if isJSON {
		if document, err = c.wanted(document); err != nil {
			return err
		}
	}
	if err := c.room("template"); err != nil {
		return err
	}
	plan, req, err := c.understand(document)
	if err != nil {
		return err
	}
	switch {
	case plan.Name == "":
		return rest.Refuse(http.StatusBadRequest, "the plan has no name, which its template needs")
	case len(plan.Artifacts) == 0:
		return rest.Refuse(http.StatusBadRequest, "the plan has no artifacts: a template of it could not be instantiated")
	}
	// What would not fit an empty platform is unresolved; what does not fit
	// now may fit later.
	_, err = c.Service.Mapper.Map(c.Service.Inventory(), mapping.Occupancy{}, req, mapping.Options{})
	var refused *mapping.Refusal
	if errors.As(err, &refused) && !refused.GaveUp {
		return &rest.Error{Status: http.StatusBadRequest, Err: fmt.Errorf("a requirement is unresolved: %w", err)}
	}
	if err != nil && refused == nil {
		return err
	}
	id, err := c.newID()
	if err == nil {
		err = c.Records.Put(c.owner, "template-"+id, &templateRecord{document, c.Clock().UTC()})
	}
	if err != nil {
		return err
	}
	return c.made("assemblyTemplates/" + id)
}

// wanted finds the package that {"pdp_uri": …} names. {"plan_uri": …} names a
// plan alone.
func (c *call) wanted(body []byte) ([]byte, error) {
	o, err := object(body)
	if err != nil {
		return nil, err
	}
	uri, _ := o["pdp_uri"].(string)
	if uri == "" {
		uri, _ = o["plan_uri"].(string)
	}
	if uri == "" {
		return nil, rest.Refuse(http.StatusBadRequest, `want {"pdp_uri": "…"}`)
	}
	base, err := url.Parse(c.url(c.r, "platform"))
	if err != nil {
		return nil, err
	}
	at, err := base.Parse(uri)
	if err != nil {
		return nil, refuseAttribute(http.StatusBadRequest, "pdp_uri", "%q is no URI", uri)
	}
	own := strings.TrimSuffix(c.url(c.r, ""), "/")
	if path, ok := strings.CutPrefix(at.String(), own+"/"); ok {
		if id, ok := strings.CutPrefix(strings.TrimSuffix(path, "/content"), "packages/"); ok {
			var p packageRecord
			if err := c.Records.Get(c.owner, "package-"+id, &p); err != nil {
				return nil, refuseAttribute(http.StatusBadRequest, "pdp_uri", "there is no package %q", uri)
			}
			return p.Data, nil
		}
		return nil, refuseAttribute(http.StatusBadRequest, "pdp_uri", "%q is no package of this platform: POST one to %s", uri, c.url(c.r, "packages"))
	}
	return c.fetch(at)
}

// fetch gets a package from a host that the operator has named.
func (c *call) fetch(at *url.URL) ([]byte, error) {
	if at.Scheme != "https" || !slices.Contains(c.Hosts, at.Host) {
		return nil, refuseAttribute(http.StatusBadRequest, "pdp_uri", "nothing is fetched from %s://%s: POST the package to %s", at.Scheme, at.Host, c.url(c.r, "packages"))
	}
	ctx, cancel := context.WithTimeout(c.ctx, time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, err
	}
	client := *c.client()
	client.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		if r.URL.Scheme != "https" || !slices.Contains(c.Hosts, r.URL.Host) || len(via) > 5 {
			return fmt.Errorf("it leads to %s, from where nothing is fetched", r.URL.Host)
		}
		return nil
	}
	answer, err := client.Do(req)
	if err != nil {
		return nil, refuseAttribute(http.StatusBadGateway, "pdp_uri", "the package could not be fetched: %v", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, refuseAttribute(http.StatusBadGateway, "pdp_uri", "the package could not be fetched: %s", answer.Status)
	}
	data, err := io.ReadAll(io.LimitReader(answer.Body, archive.MaxTotal+1))
	if err != nil || len(data) > archive.MaxTotal {
		return nil, refuseAttribute(http.StatusBadGateway, "pdp_uri", "the package could not be fetched whole, or has more than %d bytes", archive.MaxTotal)
	}
	return data, nil
}

func (c *call) client() *http.Client {
	if c.Client != nil {
		return c.Client
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}}}
}

// export gives a template, or the one that an assembly was made of, as a
// package; the parameter format is tar, tgz or zip.
func (c *call) export(kind, id string) error {
	if kind == "assemblies" {
		a, err := c.assembly(id)
		if err != nil {
			return err
		}
		if a.derived {
			return noPackage(a)
		}
		return c.write(id, a.Document)
	}
	t, err := c.template(id)
	if err != nil {
		return err
	}
	return c.write(id, t.Document)
}

func (c *call) write(id string, document []byte) error {
	format := pdp.Tar
	if f := c.r.URL.Query().Get("format"); f != "" {
		format = pdp.Format(f)
	}
	plan, err := camp.Open(document)
	if err != nil {
		return err
	}
	text, names, read := document, []string(nil), func(string) ([]byte, error) { return nil, errors.New("no such file") }
	if plan.Package != nil {
		text, names, read = plan.Package.Plan, plan.Package.Names(), plan.Package.ReadFile
	}
	var out bytes.Buffer
	if err := pdp.Write(&out, format, text, names, read); err != nil {
		return &rest.Error{Status: http.StatusBadRequest, Err: err}
	}
	types := map[pdp.Format]string{pdp.Tar: "application/x-tar", pdp.Tgz: "application/gzip", pdp.Zip: "application/zip"}
	c.w.Header().Set("Content-Type", types[format])
	c.w.Header().Set("Content-Length", strconv.Itoa(out.Len()))
	c.w.Header().Set("Content-Disposition", fmt.Sprintf(`attachment; filename="%s.%s"`, id, format))
	if c.r.Method != http.MethodHead {
		_, _ = out.WriteTo(c.w)
	}
	return nil
}

// delete ends a package, a template or an assembly.
func (c *call) delete(r *resource) error {
	kind, id, _ := strings.Cut(r.path, "/")
	switch kind {
	case "packages":
		if err := c.Records.Delete(c.owner, "package-"+id); err != nil {
			return err
		}
	case "assemblyTemplates":
		if err := c.Records.Delete(c.owner, "template-"+id); err != nil {
			return err
		}
		if err := c.drop(r.path, "applicationComponentTemplates/"+id, "applicationComponentRequirements/"+id, "platformComponentRequirements/"+id); err != nil {
			return err
		}
	case "assemblies":
		if err := c.end(r.assembly); err != nil {
			return err
		}
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// post instantiates a template, or suspends or resumes an assembly.
func (c *call) post(r *resource) error {
	body, err := rest.Body(c.r)
	if err != nil {
		return err
	}
	if r.template != nil {
		return c.instantiate(r, body)
	}
	o, err := object(body)
	if err != nil {
		return err
	}
	var action aggregate.Action
	switch o["new_state"] {
	case "suspend":
		action = aggregate.Stop
	case "resume":
		action = aggregate.Start
	default:
		return refuseAttribute(http.StatusBadRequest, "new_state", `the states are "suspend" and "resume"`)
	}
	if err := c.act(r.assembly, action); err != nil {
		return err
	}
	after, err := c.find(r.path)
	if err != nil {
		return err
	}
	c.json(c.w, c.r, http.StatusOK, after.attributes)
	return nil
}
