package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"croft/internal/atomicfile"
	"croft/inventory/advert"
	"croft/urn"
)

// longestAdvertisement bounds what import reads: ten times the largest testbed's.
const longestAdvertisement = 256 << 20

func (a *app) importCommand() *cobra.Command {
	var authority, out string
	var keep bool
	c := &cobra.Command{
		Use:   "import AD.xml",
		Short: "Make an inventory of the advertisement of a testbed, to be simulated",
		Long: `Make an inventory of what a testbed advertises (GENI version 3 or ProtoGENI 2):
its nodes, images, switches and cables. The nodes are of the simulated driver,
which only pretends: put the file in the place of inventory.yaml, and croft
serve shows that testbed, to be tried without root and without machines. What
could not be taken over is told on standard error. AD.xml may be - for standard
input.`,
		Example: `  croft list --am https://am.example.net:12369/ --raw > ad.xml
  croft inventory import ad.xml --out croft-data/inventory.yaml
  croft serve`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			data, name, err := a.readAdvertisement(args[0])
			if err != nil {
				return err
			}
			named := urn.Authority(authority)
			if authority != "" {
				if _, err := urn.New(named, urn.AuthorityType, "cm"); err != nil {
					return fmt.Errorf("import: --authority: %w", err)
				}
			}
			i, err := advert.Import(data, name, advert.Options{Authority: named, KeepUnavailable: keep})
			if err != nil {
				return err
			}
			for _, n := range i.Notes {
				fmt.Fprintf(a.errs, "note: %s\n", n)
			}
			if out == "" {
				_, err := a.out.Write(i.YAML)
				return err
			}
			if err := atomicfile.Write(out, i.YAML, 0o644); err != nil {
				return fmt.Errorf("import: %w", err)
			}
			s := i.Snapshot
			fmt.Fprintf(a.errs, "%s: %d hosts, %d switches, %d links, of %s\n", out, len(s.Hosts), len(s.Switches), len(s.Links), s.Manager)
			return nil
		},
	}
	c.Flags().StringVar(&authority, "authority", "", "`name` of the testbed (default: as it is advertised)")
	c.Flags().StringVar(&out, "out", "", "`file` to write, in the place of one that is there (default: standard output)")
	c.Flags().BoolVar(&keep, "keep-unavailable", false, "put nodes out of service that were not available")
	return c
}

func (a *app) readAdvertisement(file string) (data []byte, name string, err error) {
	name = filepath.Base(file)
	from := a.in
	if file == "-" {
		name = "standard input"
	} else {
		f, err := os.Open(file)
		if err != nil {
			return nil, "", fmt.Errorf("import: %w", err)
		}
		defer f.Close()
		from = f
	}
	data, err = io.ReadAll(io.LimitReader(from, longestAdvertisement+1))
	if err != nil {
		return nil, "", fmt.Errorf("import %s: %w", name, err)
	}
	if len(data) > longestAdvertisement {
		return nil, "", fmt.Errorf("import %s: more than %d MiB", name, longestAdvertisement>>20)
	}
	return data, name, nil
}
