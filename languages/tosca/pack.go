package tosca

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"croft/languages"
	"croft/languages/tosca/model"
)

// recorder notes the files that are read.
type recorder struct {
	model.Files
	read map[string][]byte
}

func (r *recorder) ReadFile(name string) ([]byte, error) {
	data, err := r.Files.ReadFile(name)
	if err == nil {
		r.read[name] = data
	}
	return data, err
}

// Relative is the name of a file of the machine with an absolute path.
func (r *recorder) Relative(name string) (string, bool) {
	if m, ok := r.Files.(model.Machine); ok {
		return m.Relative(name)
	}
	return "", false
}

// Pack makes an archive (CSAR) of a TOSCA file and all that it uses: imports,
// and the files of its artifacts. It also tells how many files are in it. What
// is wrong with the file is told by those who read the archive.
func Pack(ctx context.Context, file string) (archive []byte, count int, err error) {
	source, err := OpenFile(file)
	if err != nil {
		return nil, 0, err
	}
	files := &recorder{source.Files, map[string][]byte{}}
	source.Files = files
	result, err := source.Check(ctx, nil, false)
	if err != nil {
		return nil, 0, err
	}
	if result.Service != nil {
		d := &deployment{ctx: ctx, source: source, scope: languages.Scope{}, templates: result.Templates}
		d.plan(result.Service)
		d.artifacts()
	}
	archive, err = files.zip(source)
	return archive, len(files.read), err
}

// Encode writes an archive as the text that it is sent as.
func Encode(archive []byte) string { return base64.StdEncoding.EncodeToString(archive) }

// artifacts reads the files of all artifacts and implementations.
func (d *deployment) artifacts() {
	for _, i := range d.instances {
		// What is missing is told when it is needed.
		read := func(u *model.Unit, file string) {
			if u != nil && file != "" {
				_, _ = u.File(file)
			}
		}
		for _, name := range i.node.Artifacts.Names {
			if a, _ := i.node.Artifacts.Get(name); a.File != "" {
				_, _ = a.Read()
			}
		}
		faces := []model.Named[*model.NodeInterface]{i.node.Interfaces}
		for _, r := range i.node.Out {
			faces = append(faces, r.Interfaces)
		}
		for _, list := range faces {
			for _, name := range list.Names {
				face, _ := list.Get(name)
				for _, o := range face.Operations.Names {
					op, _ := face.Operations.Get(o)
					if op.Implementation == nil {
						continue
					}
					for _, ref := range append([]model.Reference{op.Implementation.Primary}, op.Implementation.Dependencies...) {
						if ref.Own != nil {
							_, _ = ref.Own.Read()
						} else {
							read(ref.Unit, ref.Name)
						}
					}
				}
			}
		}
	}
}

func (r *recorder) zip(source *Source) ([]byte, error) {
	var packed bytes.Buffer
	z := zip.NewWriter(&packed)
	add := func(name string, data []byte) error {
		w, err := z.Create(name)
		if err == nil {
			_, err = w.Write(data)
		}
		return err
	}
	meta := fmt.Sprintf("CSAR-Version: 2.0\nCreated-By: croft\nEntry-Definitions: %q\n", source.Entry)
	if len(source.Others) > 0 {
		meta += "Other-Definitions:"
		for _, other := range source.Others {
			meta += fmt.Sprintf(" %q", other)
		}
		meta += "\n"
	}
	if err := add("TOSCA.meta", []byte(meta)); err != nil {
		return nil, err
	}
	names := make([]string, 0, len(r.read))
	for name := range r.read {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if strings.HasPrefix(name, "../") || !fs.ValidPath(name) {
			return nil, errors.New(name + " lies above the folder of the template: an archive cannot have it")
		}
		if name == "TOSCA.meta" {
			continue
		}
		if err := add(name, r.read[name]); err != nil {
			return nil, err
		}
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}
