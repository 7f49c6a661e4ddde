package federation

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"croft/internal/atomicfile"
	"croft/urn"
)

// sliceName is the rule for slice names (AM API v3, "Identifiers").
var sliceName = regexp.MustCompile(`^[a-zA-Z0-9][-a-zA-Z0-9]{0,18}$`)

// Slice is an experiment: what slivers are given to.
type Slice struct {
	Name        string
	URN         urn.URN
	Dir         string // the folder with the slice's files
	Certificate *x509.Certificate
	Expires     time.Time
}

// sliceRecord is slice.json: what a slice's certificate does not say.
type sliceRecord struct {
	URN     urn.URN   `json:"urn"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires"`
	Members []urn.URN `json:"members"`
}

// AddSlice makes a slice with a credential for a member, which lasts for
// validity. For a slice that exists it adds the member, or renews the member's
// credential. The slice itself never ends sooner than it did.
func (f *Federation) AddSlice(name string, m *Member, validity time.Duration) (*Slice, []Change, error) {
	if !sliceName.MatchString(name) {
		return nil, nil, fmt.Errorf("slice name %q: want up to 19 letters, digits and hyphens, the first no hyphen", name)
	}
	if err := f.checkSliceCase(name); err != nil {
		return nil, nil, err
	}
	now := f.now().UTC().Truncate(time.Second)
	if validity <= 0 {
		return nil, nil, fmt.Errorf("slice %s: a credential that lasts %s is good for nothing", name, validity)
	}
	expires := now.Add(validity)
	if end := m.Certificate.NotAfter; expires.After(end) {
		return nil, nil, fmt.Errorf("slice %s: a credential cannot last longer than the member's certificate, until %s (croft member add %s renews one that ends soon)",
			name, end.Format(time.RFC3339), m.Name)
	}
	folder := "slices/" + name + "/"
	if err := os.MkdirAll(f.path(folder), 0o700); err != nil {
		return nil, nil, fmt.Errorf("make slice %s: %w", name, err)
	}
	s := &Slice{Name: name, URN: urn.URN{Authority: f.authority, Type: urn.Slice, Name: name}, Dir: f.path(folder)}
	var log changes
	if err := f.makeSliceCertificate(s, folder, &log); err != nil {
		return nil, log, err
	}
	record, err := f.readSlice(name)
	if errors.Is(err, fs.ErrNotExist) {
		record, err = &sliceRecord{URN: s.URN, Created: now}, nil
	}
	if err != nil {
		return nil, log, err
	}
	known := false
	for _, u := range record.Members {
		known = known || u.Equal(m.URN)
	}
	if !known {
		record.Members = append(record.Members, m.URN)
	}
	if expires.After(record.Expires) {
		record.Expires = expires
	}
	data, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return nil, log, fmt.Errorf("slice %s: %w", name, err)
	}
	if err := atomicfile.Write(f.path(folder+"slice.json"), append(data, '\n'), 0o644); err != nil {
		return nil, log, err
	}
	s.Expires = record.Expires
	return s, log, f.makeSliceCredential(s, m, expires, &log)
}

// makeSliceCertificate sees to the certificate that credentials name the slice
// by. Nobody ever uses its key, which is not kept; the certificate stays the
// same for the life of the slice, and with it the slice's UUID.
func (f *Federation) makeSliceCertificate(s *Slice, folder string, log *changes) error {
	err := log.ensure(f, folder+"slice.pem", "certificate of "+s.URN.String(), 0o644, func() ([]byte, error) {
		key, err := rsa.GenerateKey(rand.Reader, keyBits)
		if err != nil {
			return nil, err
		}
		cert, err := f.issue(f.ca, key, subject{urn: s.URN, validity: authorityValidity, usage: x509.KeyUsageDigitalSignature})
		if err != nil {
			return nil, err
		}
		return encodeCertificates(cert, f.ca.cert), nil
	})
	if err != nil {
		return err
	}
	chain, err := readCertificates(f.path(folder + "slice.pem"))
	if err != nil {
		return err
	}
	s.Certificate = chain[0]
	return nil
}

// checkSliceCase refuses a name that differs from an existing one in case
// only: slice names compare without it (Federation AM API, "Identifiers").
func (f *Federation) checkSliceCase(name string) error {
	entries, err := os.ReadDir(f.path("slices"))
	if err != nil {
		return fmt.Errorf("list slices: %w", err)
	}
	for _, e := range entries {
		if e.Name() != name && strings.EqualFold(e.Name(), name) {
			return fmt.Errorf("slice name %q: %q %w, and slice names differ in more than case", name, e.Name(), ErrExists)
		}
	}
	return nil
}

func (f *Federation) readSlice(name string) (*sliceRecord, error) {
	path := f.path("slices/" + name + "/slice.json")
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read slice %s: %w", name, err)
	}
	r := new(sliceRecord)
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("read slice %s: %s: %w", name, path, err)
	}
	return r, nil
}

// CredentialFile returns where a member's credential for a slice lies in a
// federation's folder.
func CredentialFile(dir, slice, member string) string {
	return filepath.Join(dir, "slices", slice, "credential-"+member+".xml")
}
