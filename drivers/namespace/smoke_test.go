package namespace_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"testing"
	"time"

	"croft/drivers"
	"croft/drivers/namespace"
	"croft/urn"
)

func TestSmoke(t *testing.T) {
	d, err := namespace.New(namespace.Config{Dir: t.TempDir(), Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	ctx := context.Background()
	if err := d.Check(ctx); err != nil {
		t.Fatal(err)
	}
	s := urn.MustParse("urn:publicid:IDN+x+sliver+a")
	t0 := time.Now()
	if err := d.Make(ctx, drivers.Node{Sliver: s, Slice: s, Hostname: "a"}); err != nil {
		t.Fatal(err)
	}
	t1 := time.Now()
	if err := d.Start(ctx, s); err != nil {
		t.Fatal(err)
	}
	t2 := time.Now()
	t.Log(t1.Sub(t0), t2.Sub(t1))
	var out bytes.Buffer
	err = d.Exec(ctx, s, drivers.Command{Args: []string{"/bin/bash", "-c", os.Getenv("CMD")}, Stdout: &out, Stderr: &out})
	t.Log(out.String(), err)
	d.Log(ctx, s, os.Stderr)
	t3 := time.Now()
	if err := d.Remove(ctx, s); err != nil {
		t.Fatal(err)
	}
	t.Log(time.Since(t3))
}
