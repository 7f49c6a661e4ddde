package credentials

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"croft/urn"
)

// A Credential is one as it comes with a call: geni_type, geni_version and
// geni_value. Version 2 of the AM API sends bare strings, which are of Type
// "geni_sfa" and Version "".
type Credential struct{ Type, Version, Value string }

// Presented is what a call brings to prove its right.
type Presented struct {
	Credentials []Credential
	// SpeakingFor is the option geni_speaking_for, or zero.
	SpeakingFor urn.URN
}

// The bounds of one call.
const (
	maxCredentials     = 32
	maxCredentialBytes = 4 << 20
)

// A Verifier turns callers and what they present into principals. It is safe
// for parallel use.
type Verifier struct {
	trust  *Trust
	policy *Policy
	cache  *cache[*verified]
	own    func(urn.URN) []LocalRight // see Owning; nil for nobody's
}

// NewVerifier returns a verifier that relies on trust. With policy nil, the
// rule of the SFA holds: who owns a credential for the slice may do what its
// privileges say.
func NewVerifier(trust *Trust, policy *Policy) *Verifier {
	return &Verifier{trust: trust, policy: policy, cache: newCache[*verified](4096)}
}

// A Principal is a caller, the user that the call is for, and the rights that
// were proven.
type Principal struct {
	Caller *Caller
	// User is the effective user: the caller, or whom the caller speaks for.
	// It is zero when the caller claims to speak for somebody and does not
	// prove it.
	User urn.URN
	// SpeaksBy is the credential that lets the caller speak for User.
	SpeaksBy *Identity

	policy  *Policy
	now     func() time.Time
	usable  []indexed
	own     []indexed // rights without a credential
	userKey KeyID     // of User, if SpeaksBy is set
	denied  *Refusal  // why User is zero
	// reasons say why credentials are of no use for any call, in order.
	reasons []reason
	used    []Identity
}

// Used lists the credentials that gave the rights that May has found so far,
// for the audit log.
func (p *Principal) Used() []Identity { return p.used }

type indexed struct {
	index int
	*verified
}

type reason struct {
	index int // of the credential in the call
	text  string
}

// A Grant is the right to a call.
type Grant struct {
	// Expires is when the right ends; what is made by it must end by then.
	Expires time.Time
	// Rights are the privileges of the credential that gave it.
	Rights []Privilege
	// Credential is the credential that gave the right, and Proof all that
	// were needed, for the audit log.
	Credential Identity
	Proof      []Identity
}

// Verify checks every credential that a call presents. One that is of no use
// is no error: the Principal keeps why. An error means that the call could not
// be looked at, such as a context that ended.
func (v *Verifier) Verify(ctx context.Context, caller *Caller, p Presented) (*Principal, error) {
	if caller == nil {
		return nil, errors.New("verify credentials: nobody calls")
	}
	principal := &Principal{Caller: caller, policy: v.policy, now: v.trust.options.Now}
	a, left := v.trust.current(), maxCredentialBytes
	for i, c := range p.Credentials {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("verify credentials: %w", err)
		}
		if left -= len(c.Value); i >= maxCredentials || left < 0 {
			principal.useless(i, fmt.Errorf("not looked at: a call may bring %d credentials of %d bytes together", maxCredentials, maxCredentialBytes))
			break
		}
		found, err := v.one(a, c)
		if err != nil {
			principal.useless(i, err)
			continue
		}
		principal.usable = append(principal.usable, indexed{i, found})
	}
	principal.speak(p.SpeakingFor)
	if v.own != nil && !principal.User.IsZero() {
		principal.own = locally(principal.User, principal.now(), v.own(principal.User))
	}
	principal.usable = slices.DeleteFunc(principal.usable, func(c indexed) bool {
		if c.statement != nil || c.owner.Equal(principal.User) {
			return false
		}
		principal.useless(c.index, fmt.Errorf("gives rights on %s to %s, not to you (%s)", c.target, c.owner, principal.name()))
		return true
	})
	return principal, nil
}

func (p *Principal) useless(index int, err error) {
	p.reasons = append(p.reasons, reason{index, err.Error()})
}

func (p *Principal) name() string {
	if p.User.IsZero() {
		return p.Caller.URN.String()
	}
	return p.User.String()
}

// one verifies one credential or remembers that it did.
func (v *Verifier) one(a *anchors, c Credential) (*verified, error) {
	switch strings.ToLower(c.Type) {
	case "geni_sfa", "geni_abac", "geni_unknown", "":
		// The document itself says what it is.
	default:
		return nil, fmt.Errorf("credentials of the type %.40q are not understood; want geni_sfa or geni_abac", c.Type)
	}
	if strings.TrimSpace(c.Value) == "" {
		return nil, errors.New("the credential is empty")
	}
	key, now := sha256.Sum256([]byte(c.Value)), v.trust.options.Now()
	if found, ok := v.cache.get(key, a.generation, now); ok {
		return found, nil
	}
	found, err := v.trust.read(a, c.Value)
	if err != nil {
		return nil, err
	}
	v.cache.put(key, a.generation, found.until, found)
	return found, nil
}

// May reports whether the principal may make a call on a slice. A call on
// slivers names their slice as target and the slivers after it: then
// credentials for all the slivers are as good as one for the slice. The target
// of ListResources is zero. An error is a *Refusal and says of every
// credential why it did not count.
func (p *Principal) May(call Call, target urn.URN, slivers ...urn.URN) (Grant, error) {
	if p.denied != nil {
		return Grant{}, p.refusal(call, target, p.denied.Text, p.reasons)
	}
	if grant, ok := p.mayOwn(call, target); ok {
		p.used = append(p.used, grant.Proof...)
		return grant, nil
	}
	if p.policy != nil && p.policy.decides(call) {
		grant, err := p.mayByPolicy(call, target, slivers)
		if err == nil {
			p.used = append(p.used, grant.Proof...)
		}
		return grant, err
	}
	grant, reasons := p.mayBySFA(call, target, slivers)
	if reasons != nil {
		return Grant{}, p.refusal(call, target, "", reasons)
	}
	p.used = append(p.used, grant.Proof...)
	return grant, nil
}

// mayBySFA looks for the credential that grants a call the longest. Without
// one, it returns why (never nil).
func (p *Principal) mayBySFA(call Call, target urn.URN, slivers []urn.URN) (Grant, []reason) {
	reasons := slices.Clone(p.reasons)
	now := p.now()
	var best *Grant
	perSliver := make([]*Grant, len(slivers))
	better := func(old **Grant, c indexed) {
		if *old == nil || (*old).Expires.Before(c.expires) {
			*old = &Grant{Expires: c.expires, Rights: c.privileges, Credential: c.id, Proof: []Identity{c.id}}
		}
	}
	for _, c := range p.usable {
		switch {
		case c.statement != nil:
			reasons = append(reasons, reason{c.index, "states a role; it gives no rights on a slice"})
			continue
		case !c.expires.After(now):
			reasons = append(reasons, reason{c.index, "expired at " + c.expires.Format(time.RFC3339)})
			continue
		case call == ListResources:
			better(&best, c)
			continue
		}
		grants := slices.ContainsFunc(c.privileges, func(p Privilege) bool { return p.grants(call) })
		fits := covers(c.target, target)
		if fits && grants {
			better(&best, c)
		}
		for i, sliver := range slivers {
			if c.target.Equal(sliver) {
				fits = true
				if grants {
					better(&perSliver[i], c)
				}
			}
		}
		switch {
		case !fits:
			reasons = append(reasons, reason{c.index, fmt.Sprintf("is for %s, not for %s", c.target, target)})
		case !grants:
			reasons = append(reasons, reason{c.index, fmt.Sprintf("its privileges (%s) do not include %s", names(c.privileges), call)})
		}
	}
	if best == nil && len(slivers) > 0 && !slices.Contains(perSliver, nil) {
		all := *perSliver[0]
		for _, g := range perSliver[1:] {
			all.Expires = earliest(all.Expires, g.Expires)
			all.Proof = append(all.Proof, g.Credential)
		}
		best = &all
	}
	if best == nil {
		if reasons == nil {
			reasons = []reason{}
		}
		return Grant{}, reasons
	}
	grant := *best
	if p.SpeaksBy != nil {
		grant.Proof = append(slices.Clone(grant.Proof), *p.SpeaksBy)
	}
	return grant, nil
}

func names(privileges []Privilege) string {
	if len(privileges) == 0 {
		return "none"
	}
	var list []string
	for _, p := range privileges {
		list = append(list, p.Name)
	}
	return strings.Join(list, ", ")
}

// refusal says what was refused and, of every credential, why it did not
// count.
func (p *Principal) refusal(call Call, target urn.URN, why string, reasons []reason) *Refusal {
	var b strings.Builder
	fmt.Fprintf(&b, "%s may not call %s", p.name(), call)
	if !target.IsZero() {
		fmt.Fprintf(&b, " on %s", target)
	}
	if why != "" {
		b.WriteString(": " + why)
	}
	if len(reasons) == 0 && why == "" {
		b.WriteString(": no credential was presented")
	}
	slices.SortStableFunc(reasons, func(a, b reason) int { return a.index - b.index })
	for _, r := range reasons {
		fmt.Fprintf(&b, "; credential %d: %s", r.index+1, r.text)
	}
	return &Refusal{Text: b.String()}
}
