package aggregate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"croft/credentials"
	"croft/inventory"
	"croft/languages"
	"croft/mapping"
	"croft/rspec"
	"croft/slivers"
	"croft/urn"
)

// Manager is the component manager that this aggregate is.
func (s *Service) Manager() urn.URN { return s.Inventory().Manager }

// RequestVersions lists the document formats that Allocate reads.
func (s *Service) RequestVersions() []languages.Version {
	var list []languages.Version
	for _, l := range s.Languages {
		list = append(list, l.Versions()...)
	}
	return list
}

// AdvertisementVersions lists the formats that Advertise writes. Manifests
// come in these, too.
func (s *Service) AdvertisementVersions() []languages.Version { return rspec.AdvertisementVersions() }

// offers returns a BadVersion error for a manifest format that is not written
// here.
func (s *Service) offers(version languages.Version) error {
	for _, v := range rspec.ManifestVersions() {
		if v.Is(version.Type, version.Version) {
			return nil
		}
	}
	return s.notOffered(version, rspec.ManifestVersions())
}

// manifestVersion is the format of a manifest for a document in a format: the
// same where manifests are written in it, else GENI 3.
func manifestVersion(document languages.Version) languages.Version {
	offered := rspec.ManifestVersions()
	for _, v := range offered {
		if v.Is(document.Type, document.Version) {
			return v
		}
	}
	return offered[0]
}

func (s *Service) notOffered(version languages.Version, offered []languages.Version) error {
	return &Error{Kind: BadVersion, Err: &languages.UnknownVersion{
		Found: strings.TrimSpace(version.Type + " " + version.Version), Offered: offered,
	}}
}

// AdvertiseOptions are what Advertise can be told.
type AdvertiseOptions struct {
	Version   languages.Version
	Available bool // only what can be had now
}

// adCache keeps the advertisements of now: what an inventory says is written
// once, availability is put in whenever it has changed.
type adCache struct {
	mu        sync.Mutex
	digest    string
	catalogue *rspec.Catalogue
	of        map[bool]keptAd // by AdvertiseOptions.Available
}

type keptAd struct {
	ad        *rspec.Ad
	occupancy int64
	closed    string // hosts that take no new nodes
	made      time.Time
}

// adAge is how long an advertisement is given out unchanged. It bounds the age
// of its "generated" attribute; what is available is always of now.
const adAge = 10 * time.Minute

// Advertise tells what the testbed has. Any credential that proves who calls is
// enough.
func (s *Service) Advertise(ctx context.Context, p *credentials.Principal, o AdvertiseOptions) (*rspec.Ad, error) {
	ad, err := s.advertise(ctx, p, o)
	if err != nil {
		return nil, fail("advertise", nil, err)
	}
	return ad, nil
}

func (s *Service) advertise(_ context.Context, p *credentials.Principal, o AdvertiseOptions) (*rspec.Ad, error) {
	if _, err := p.May(credentials.ListResources, urn.URN{}); err != nil {
		return nil, err
	}
	known := false
	for _, v := range rspec.AdvertisementVersions() {
		known = known || v.Is(o.Version.Type, o.Version.Version)
	}
	if !known {
		return nil, s.notOffered(o.Version, rspec.AdvertisementVersions())
	}
	s.ads.mu.Lock()
	defer s.ads.mu.Unlock()
	snapshot, now := s.Inventory(), s.Clock()
	if s.ads.catalogue == nil || s.ads.digest != snapshot.Digest {
		c, err := rspec.NewCatalogue(snapshot)
		if err != nil {
			return nil, fmt.Errorf("writing the advertisement: %w", err)
		}
		s.ads.digest, s.ads.catalogue, s.ads.of = snapshot.Digest, c, map[bool]keptAd{}
	}
	occupancy := s.Store.Occupancy()
	closed := s.closed()
	names := namesOf(closed)
	kept := s.ads.of[o.Available]
	if kept.ad == nil || kept.occupancy != occupancy.Version || kept.closed != names || now.Sub(kept.made) > adAge {
		kept = keptAd{occupancy: occupancy.Version, closed: names, made: now, ad: s.ads.catalogue.Ad(kept.ad,
			func(h *inventory.Host) bool {
				_, isClosed := closed[h.ID.Canonical()]
				return !isClosed && available(h, occupancy)
			},
			rspec.AdvertisementOptions{AvailableOnly: o.Available, Now: now})}
		s.ads.of[o.Available] = kept
	}
	return kept.ad, nil
}

// available reports whether a host would take one more node of somebody's.
func available(h *inventory.Host, occupancy mapping.Occupancy) bool {
	use := occupancy.Hosts[h.ID.Canonical()]
	switch {
	case h.OutOfService != "", use.Exclusive, h.MaxSlivers > 0 && use.Slivers >= h.MaxSlivers:
		return false
	case !h.Shared:
		return use.Slivers == 0
	}
	// What is not counted does not run out.
	left := h.Capacity.Minus(use.Amount)
	return (h.Capacity.Cores == 0 || left.Cores > 0) && (h.Capacity.Memory == 0 || left.Memory > 0) &&
		(h.Capacity.Disk == 0 || left.Disk > 0)
}

// manifest renders slivers of a slice.
func (s *Service) manifest(ctx context.Context, snapshot *inventory.Snapshot, slice urn.URN, list []slivers.Sliver, version languages.Version) ([]byte, error) {
	documents, err := s.Store.Documents(ctx, slice)
	if err != nil {
		return nil, err
	}
	shown := map[slivers.DocumentID]bool{}
	for _, v := range list {
		shown[v.Document] = true
	}
	documents = slices.DeleteFunc(documents, func(d slivers.Document) bool { return !shown[d.ID] })
	m, err := rspec.Manifest(rspec.ManifestInput{
		Snapshot: snapshot, Slice: slice, Documents: documents, Slivers: list, Version: version, Now: s.Clock(),
		Gateway: s.gateway(),
	})
	var unknown *languages.UnknownVersion
	if err != nil && !errors.As(err, &unknown) {
		return nil, fmt.Errorf("writing the manifest: %w", err)
	}
	return m, err
}
