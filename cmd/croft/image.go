package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"croft/drivers/namespace/images"
	"croft/internal/config"
	"croft/inventory"
	"croft/urn"
)

// buildTime bounds the making of an image: packages come over the network.
const buildTime = 30 * time.Minute

const imageHelp = `Systems that nodes of the driver namespace boot. An image is a directory with
a root file system, kept beside the nodes; nodes share it and change copies of
their own. What is printed goes into the inventory, and the image's name into
"images" of the sliver types that offer it.

An image with OpenSSH's server serves logins by it; others are served by the
node's init.`

func (a *app) imageCommand() *cobra.Command {
	c := group(&cobra.Command{Use: "image", Short: "Systems for nodes: build, import, list", Long: imageHelp})
	var suite string
	var include []string
	build := &cobra.Command{
		Use:   "build NAME --suite SUITE",
		Short: "Make an image out of a distribution's packages",
		Long: `Make an image out of the packages of a Debian or Ubuntu release, by mmdebstrap
or debootstrap, whichever is there. The packages come from where this machine
has its own (/etc/apt/sources.list). openssh-server, sudo, iproute2 and
iputils-ping are always among them.`,
		Example: "  croft image build debian12 --suite bookworm --include python3,tcpdump",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.makeImage(cmd.Context(), func(ctx context.Context, s images.Store) (*images.Image, error) {
				return s.Build(ctx, args[0], suite, include)
			})
		},
	}
	build.Flags().StringVar(&suite, "suite", "", "code `name` of the release, such as bookworm")
	build.Flags().StringSliceVar(&include, "include", nil, "more `packages`")
	build.MarkFlagRequired("suite")
	c.AddCommand(build,
		&cobra.Command{
			Use:   "import NAME TARBALL",
			Short: "Make an image of a tarball of a root file system",
			Args:  cobra.ExactArgs(2),
			RunE: func(cmd *cobra.Command, args []string) error {
				return a.makeImage(cmd.Context(), func(ctx context.Context, s images.Store) (*images.Image, error) {
					return s.Import(ctx, args[0], args[1])
				})
			},
		},
		&cobra.Command{
			Use: "list", Short: "List the images, as the inventory has them", Args: cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error { return a.listImages() },
		})
	return c
}

// imageStore is where the server's namespace driver has its state.
func (a *app) imageStore() (images.Store, urn.Authority, error) {
	conf, err := config.Load(a.path("croft.yaml"))
	if err != nil {
		return images.Store{}, "", err
	}
	store := images.Store{Dir: filepath.Join(conf.State, "images"), Log: a.errs}
	testbed, err := inventory.Load(conf.Inventory)
	if err != nil {
		return store, "", nil // it may name the image that is about to be made
	}
	return store, testbed.Authority, nil
}

func (a *app) makeImage(ctx context.Context, do func(context.Context, images.Store) (*images.Image, error)) error {
	store, authority, err := a.imageStore()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, buildTime)
	defer cancel()
	img, err := do(ctx, store)
	if err != nil {
		return err
	}
	return a.printImages(authority, img)
}

func (a *app) listImages() error {
	store, authority, err := a.imageStore()
	if err != nil {
		return err
	}
	list, err := store.List()
	if err != nil {
		return err
	}
	return a.printImages(authority, list...)
}

// printImages writes images as the inventory declares them.
func (a *app) printImages(authority urn.Authority, list ...*images.Image) error {
	if a.json {
		out := []map[string]any{}
		for _, i := range list {
			out = append(out, map[string]any{
				"name": i.Name, "urn": imageURN(authority, i.Name), "os": i.OS, "distribution": i.Distribution, "version": i.Version,
				"architecture": i.Architecture, "description": i.Description, "source": i.Dir, "sshd": i.SSHD,
			})
		}
		return a.writeJSON(map[string]any{"images": out})
	}
	if len(list) == 0 {
		fmt.Fprintln(a.errs, "There are no images (croft image build, croft image import).")
		return nil
	}
	var b strings.Builder
	b.WriteString("images:\n")
	for _, i := range list {
		fmt.Fprintf(&b, "  - name: %s\n", i.Name)
		if u := imageURN(authority, i.Name); u != "" {
			fmt.Fprintf(&b, "    # %s\n", u)
		}
		for _, f := range []struct{ name, value string }{
			{"os", i.OS}, {"distribution", i.Distribution}, {"version", i.Version}, {"architecture", i.Architecture},
			{"description", i.Description}, {"source", i.Dir},
		} {
			if f.value != "" {
				fmt.Fprintf(&b, "    %s: %q\n", f.name, f.value)
			}
		}
	}
	_, err := fmt.Fprint(a.out, b.String())
	return err
}

// imageURN is the name that the inventory gives an image, or "".
func imageURN(authority urn.Authority, name string) string {
	u, err := urn.New(authority, urn.Image, name)
	if err != nil {
		return ""
	}
	return u.String()
}
