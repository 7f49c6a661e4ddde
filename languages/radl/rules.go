package radl

import (
	"iter"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// rule is what the value of a feature must be like.
type rule struct {
	kinds     []Kind
	whole     bool     // of numbers
	values    []string // that a text can have, in any case; nil for all
	units     []string
	needsUnit bool
	check     func(*Value) (what, hint string)
}

func (r *rule) takes(v *Value) bool {
	if v.Kind == Random {
		return slices.Contains(r.kinds, String)
	}
	return slices.Contains(r.kinds, v.Kind) && (v.Kind != Number || !r.whole || v.Whole)
}

func (r *rule) want() string {
	var names []string
	for _, k := range r.kinds {
		name := k.String()
		if k == Number && r.whole {
			name = "a whole number"
		}
		names = append(names, name)
	}
	return strings.Join(names, " or ")
}

func (r *rule) unit(unit string) bool {
	return slices.ContainsFunc(r.units, func(u string) bool { return strings.EqualFold(u, unit) })
}

var (
	byteUnits = []string{"B", "K", "M", "G", "T", "KB", "MB", "GB", "TB", "Ki", "Mi", "Gi", "Ti", "KiB", "MiB", "GiB", "TiB"}

	text     = &rule{kinds: []Kind{String}}
	number   = &rule{kinds: []Kind{Number}}
	yesNo    = &rule{kinds: []Kind{String}, values: []string{"yes", "no"}}
	someText = &rule{kinds: []Kind{String}, check: notEmpty}
	version  = &rule{kinds: []Kind{String}, check: isVersion}
	size     = &rule{kinds: []Kind{Number}, units: byteUnits}

	networkRules = map[string]*rule{
		"outbound":    yesNo,
		"outports":    {kinds: []Kind{String}, check: func(v *Value) (string, string) { _, what, hint := parseOutports(v.Text); return what, hint }},
		"provider_id": text,
	}
	ansibleRules = map[string]*rule{
		"host": text, "credentials.username": text, "credentials.password": text, "credentials.private_key": text,
	}
	systemRules = map[string]*rule{
		"spot":                               yesNo,
		"image_type":                         {kinds: []Kind{String}, values: []string{"vmdk", "qcow", "qcow2", "raw"}},
		"virtual_system_type":                text,
		"price":                              number,
		"cpu.count":                          number,
		"cpu.arch":                           {kinds: []Kind{String}, values: []string{"i386", "i686", "x86_64"}},
		"cpu.performance":                    {kinds: []Kind{Number}, units: []string{"ECU", "GCEU", "HRZ"}, needsUnit: true},
		"memory.size":                        {kinds: []Kind{Number}, whole: true, units: byteUnits},
		"disk.0.os.credentials.new.password": {kinds: []Kind{String}, check: isPassword},
		"ansible_host":                       text,
	}
	interfaceRules = map[string]*rule{"connection": text, "ip": text, "dns_name": text}
	diskRules      = map[string]*rule{
		"image.url":                  {kinds: []Kind{String, List}},
		"image.name":                 text,
		"type":                       text,
		"device":                     text,
		"mount_path":                 text,
		"fstype":                     text,
		"size":                       size,
		"free_size":                  size,
		"os.name":                    {kinds: []Kind{String}, values: []string{"linux", "windows", "mac os x"}},
		"os.flavour":                 text,
		"os.version":                 version,
		"os.credentials.username":    text,
		"os.credentials.password":    text,
		"os.credentials.private_key": text,
		"os.credentials.public_key":  text,
		"applications":               {kinds: []Kind{Features}},
	}
	applicationRules = map[string]*rule{"name": someText, "path": someText, "version": version, "preinstalled": yesNo}
)

func notEmpty(v *Value) (what, hint string) {
	if v.Kind == String && v.Text == "" {
		return "it is empty", ""
	}
	return "", ""
}

func isVersion(v *Value) (what, hint string) {
	if v.Text == "" || v.Kind == Random {
		return "", ""
	}
	for _, part := range strings.Split(v.Text, ".") {
		if part == "" || strings.ContainsFunc(part, func(r rune) bool { return !unicode.IsDigit(r) }) {
			return strconv.Quote(shorten(v.Text)) + " is no version", "versions are numbers with dots between them, such as 12.04"
		}
	}
	return "", ""
}

// isPassword never repeats what it was given.
func isPassword(v *Value) (what, hint string) {
	upper := v.Text != strings.ToLower(v.Text)
	digit := strings.ContainsFunc(v.Text, unicode.IsDigit)
	special := strings.ContainsFunc(v.Text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
	if v.Kind == Random || len([]rune(v.Text)) > 6 && upper && digit && special {
		return "", ""
	}
	return "the password is too weak", "want 7 characters or more, with an upper case letter, a digit, and something other than letters and digits"
}

// index reads the number of an interface or disk.
func index(s string) (int, bool) {
	if len(s) == 0 || len(s) > 6 {
		return 0, false
	}
	n := 0
	for i := range len(s) {
		if !isDigit(s[i]) {
			return 0, false
		}
		n = n*10 + int(s[i]-'0')
	}
	return n, true
}

// indices is a set of numbers, of which the most are small.
type indices struct {
	few  uint64
	more map[int]bool
}

func (x *indices) add(n int) {
	if n < 64 {
		x.few |= 1 << n
		return
	}
	if x.more == nil {
		x.more = map[int]bool{}
	}
	x.more[n] = true
}

func (x *indices) has(n int) bool {
	if n < 64 {
		return x.few&(1<<n) != 0
	}
	return x.more[n]
}

// gap is the smallest number that is missing below one that is there.
func (x *indices) gap() (int, bool) {
	count := len(x.more)
	for n := range 64 {
		if x.few&(1<<n) != 0 {
			count++
		}
	}
	for n := range count {
		if !x.has(n) {
			return n, true
		}
	}
	return 0, false
}

// all are the numbers from 0 to the first that is missing.
func (x *indices) all() iter.Seq[int] {
	return func(yield func(int) bool) {
		for n := 0; x.has(n) && yield(n); n++ {
		}
	}
}
