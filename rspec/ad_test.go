package rspec_test

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"croft/inventory"
	"croft/inventory/advert"
	"croft/rspec"
)

// inflate reads the compressed form as a client does.
func inflate(t testing.TB, pieces []string) []byte {
	t.Helper()
	data, err := base64.StdEncoding.Strict().DecodeString(strings.Join(pieces, ""))
	if err != nil {
		t.Fatal(err)
	}
	z, err := zlib.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z) // checks the sum
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestAdsShare changes hosts at random: each advertisement is what one made
// from nothing is, in both forms, and those before it stay what they were.
func TestAdsShare(t *testing.T) {
	const seed = 4
	random := rand.New(rand.NewPCG(seed, 0))
	for _, availableOnly := range []bool{false, true} {
		t.Run(fmt.Sprintf("available only %v", availableOnly), func(t *testing.T) {
			s := testbed(600)
			c, err := rspec.NewCatalogue(s)
			if err != nil {
				t.Fatal(err)
			}
			gone := map[*inventory.Host]bool{}
			available := func(h *inventory.Host) bool { return !gone[h] }
			var ad, before *rspec.Ad
			var was []byte
			for round := range 20 {
				for range random.IntN(4) {
					h := &s.Hosts[random.IntN(len(s.Hosts))]
					gone[h] = !gone[h]
				}
				o := rspec.AdvertisementOptions{AvailableOnly: availableOnly, Now: noon.Add(time.Duration(round) * time.Second)}
				before, ad = ad, c.Ad(ad, available, o)
				text := ad.Bytes()
				if want := advertisement(t, s, available, o); !bytes.Equal(text, want) {
					t.Fatalf("round %d (seed %d): not what it is when made from nothing", round, seed)
				}
				if len(text) != ad.Size() {
					t.Errorf("Size is %d, want %d", ad.Size(), len(text))
				}
				if !bytes.Equal(inflate(t, ad.Compressed()), text) {
					t.Fatalf("round %d (seed %d): compressed it says something else", round, seed)
				}
				if before != nil && !bytes.Equal(before.Bytes(), was) {
					t.Fatalf("round %d (seed %d): the one before has changed", round, seed)
				}
				was = text
			}
		})
	}
}

func TestAdsOfManyReaders(t *testing.T) {
	c, err := rspec.NewCatalogue(testbed(300))
	if err != nil {
		t.Fatal(err)
	}
	ad := c.Ad(nil, odd, rspec.AdvertisementOptions{Now: noon})
	got := make([]string, 8)
	var readers sync.WaitGroup
	for i := range got {
		readers.Go(func() {
			got[i] = strings.Join(ad.Compressed(), "")
		})
	}
	readers.Wait()
	for _, g := range got {
		if g != got[0] {
			t.Error("readers at the same time get different documents")
		}
	}
}

func TestCompressedEmpty(t *testing.T) {
	c, err := rspec.NewCatalogue(snapshot())
	if err != nil {
		t.Fatal(err)
	}
	ad := c.Ad(nil, nil, rspec.AdvertisementOptions{})
	if !bytes.Equal(inflate(t, ad.Compressed()), ad.Bytes()) {
		t.Error("compressed it says something else")
	}
}

// TestLargeAdvertisementIsValid checks what a testbed of 10,000 hosts says.
func TestLargeAdvertisementIsValid(t *testing.T) {
	dir := schemaTool(t)
	large := advertisement(t, testbed(10_000), odd, rspec.AdvertisementOptions{Now: noon})
	t.Logf("%d bytes", len(large))
	for _, schema := range []string{"ad.xsd", "all-ad.xsd"} {
		for name, why := range violations(t, filepath.Join(dir, schema), map[string][]byte{"large": large}) {
			t.Errorf("%s: not valid by %s: %s", name, schema, why)
		}
	}
}

// TestImportedTestbeds advertises what is imported of the published
// advertisements.
func TestImportedTestbeds(t *testing.T) {
	dir := schemaTool(t)
	files, err := filepath.Glob(filepath.Join(shared(t, "corpus", "rspec"), "advertisement", "*"))
	if err != nil {
		t.Fatal(err)
	}
	documents := map[string][]byte{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		imported, err := advert.Import(data, filepath.Base(file), advert.Options{})
		if err != nil {
			continue // why is tested with the import
		}
		ad := advertisement(t, imported.Snapshot, odd, rspec.AdvertisementOptions{Now: noon})
		documents[filepath.Base(file)] = ad
		again, err := advert.Import(ad, "again", advert.Options{})
		if err != nil {
			t.Errorf("%s: our own advertisement of it does not import: %v", filepath.Base(file), err)
			continue
		}
		if was, is := len(imported.Snapshot.Hosts), len(again.Snapshot.Hosts); was != is {
			t.Errorf("%s: %d hosts, and %d after import and advertisement", filepath.Base(file), was, is)
		}
	}
	t.Logf("%d testbeds", len(documents))
	if len(documents) < len(files)/2 {
		t.Errorf("only %d of %d advertisements were imported", len(documents), len(files))
	}
	for _, schema := range []string{"ad.xsd", "all-ad.xsd"} {
		for name, why := range violations(t, filepath.Join(dir, schema), documents) {
			t.Errorf("%s: not valid by %s: %s", name, schema, why)
		}
	}
}
