package values

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Version is a TOSCA version (csd05, 5.4.2.1).
type Version struct {
	Text                string
	Major, Minor, Fix   int64
	Qualifier           string
	Build               int64
	hasFix, hasBuildNum bool
}

var versionPattern = regexp.MustCompile(`^([0-9]{1,18})\.([0-9]{1,18})(?:\.([0-9]{1,18})(?:\.([A-Za-z][A-Za-z0-9_]*)(?:-([0-9]{1,18}))?)?)?$`)

// ParseVersion reads a version: major.minor[.fix[.qualifier[-build]]].
func ParseVersion(s string) (Version, error) {
	m := versionPattern.FindStringSubmatch(s)
	if m == nil {
		return Version{}, fmt.Errorf("%q is no version: want major.minor[.fix[.qualifier[-build]]], such as '2.0' or 1.0.0.alpha-10", s)
	}
	v := Version{Text: s, Qualifier: m[4], hasFix: m[3] != "", hasBuildNum: m[5] != ""}
	v.Major, _ = strconv.ParseInt(m[1], 10, 64)
	v.Minor, _ = strconv.ParseInt(m[2], 10, 64)
	if v.hasFix {
		v.Fix, _ = strconv.ParseInt(m[3], 10, 64)
	}
	if v.hasBuildNum {
		v.Build, _ = strconv.ParseInt(m[5], 10, 64)
	}
	if v.Major == 0 && v.Minor == 0 && v.Fix == 0 && v.Qualifier != "" {
		return v, fmt.Errorf("version %s is zero and has a qualifier: zero says that there is no version", s)
	}
	return v, nil
}

// Compare orders versions. A version with a qualifier is older than the same
// without; those with different qualifiers have no order.
func (v Version) Compare(w Version) (int, error) {
	if c := cmp.Or(cmp.Compare(v.Major, w.Major), cmp.Compare(v.Minor, w.Minor), cmp.Compare(v.Fix, w.Fix)); c != 0 {
		return c, nil
	}
	switch {
	case strings.EqualFold(v.Qualifier, w.Qualifier):
		return cmp.Compare(v.Build, w.Build), nil
	case v.Qualifier == "":
		return 1, nil
	case w.Qualifier == "":
		return -1, nil
	}
	return 0, fmt.Errorf("versions %s and %s have qualifiers that nobody orders", v.Text, w.Text)
}
