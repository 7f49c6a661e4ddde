package rt0

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

// read makes a statement of text such as "A.r <- B.s & C.l.t".
func read(t testing.TB, text string) Statement {
	t.Helper()
	head, body, found := strings.Cut(text, " <- ")
	h := strings.Split(head, ".")
	if !found || len(h) != 2 {
		t.Fatalf("statement %q", text)
	}
	s := Statement{Head: Role{h[0], h[1]}}
	for _, term := range strings.Split(body, " & ") {
		switch p := strings.Split(term, "."); len(p) {
		case 1:
			s.Body = append(s.Body, Term{Principal: p[0]})
		case 2:
			s.Body = append(s.Body, Term{Principal: p[0], Role: p[1]})
		case 3:
			s.Body = append(s.Body, Term{Principal: p[0], Link: p[1], Role: p[2]})
		}
	}
	return s
}

func TestProve(t *testing.T) {
	for _, c := range []struct {
		name       string
		statements []string
		goal       string
		subject    string
		proof      []int // nil: no proof
	}{
		{"membership", []string{"A.r <- B"}, "A.r", "B", []int{0}},
		{"another subject", []string{"A.r <- B"}, "A.r", "C", nil},
		{"another role", []string{"A.r <- B"}, "A.s", "B", nil},
		{"the same role of another", []string{"B.r <- C"}, "A.r", "C", nil},
		{"inclusion", []string{"A.r <- B.s", "B.s <- C"}, "A.r", "C", []int{0, 1}},
		{"inclusion by somebody else", []string{"A.r <- B.s", "C.s <- C"}, "A.r", "C", nil},
		{"link", []string{"A.r <- A.l.s", "A.l <- B", "B.s <- C"}, "A.r", "C", []int{0, 1, 2}},
		{"link from outside", []string{"A.r <- A.l.s", "A.l <- B", "X.s <- C"}, "A.r", "C", nil},
		{"the linked are no members", []string{"A.r <- A.l.s", "A.l <- B"}, "A.r", "B", nil},
		{"intersection", []string{"A.r <- B.s & C.t", "B.s <- D", "C.t <- D"}, "A.r", "D", []int{0, 1, 2}},
		{"half an intersection", []string{"A.r <- B.s & C.t", "B.s <- D"}, "A.r", "D", nil},
		{"intersection of links", []string{"A.r <- A.l.s & B", "A.l <- L", "L.s <- B"}, "A.r", "B", []int{0, 1, 2}},
		{"circle", []string{"A.r <- B.s", "B.s <- A.r"}, "A.r", "C", nil},
		{"circle with a way in", []string{"A.r <- B.s", "B.s <- A.r", "B.s <- C"}, "A.r", "C", []int{0, 2}},
		{"only what is needed", []string{"X.y <- Z", "A.r <- B", "A.q <- B"}, "A.r", "B", []int{1}},
		{"self", []string{"A.r <- A.r.r", "A.r <- B"}, "A.r", "B", []int{1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var all []Statement
			for _, s := range c.statements {
				all = append(all, read(t, s))
			}
			goal, name, _ := strings.Cut(c.goal, ".")
			proof, ok := Prove(all, Role{goal, name}, c.subject)
			if ok != (c.proof != nil) || !reflect.DeepEqual(proof.Statements, c.proof) {
				t.Fatalf("proof %v %v, want %v", ok, proof.Statements, c.proof)
			}
		})
	}
}

// A proof ends with the first of its statements, and the longest is found.
func TestProofsEnd(t *testing.T) {
	at := func(day int) time.Time { return time.Date(2030, 1, day, 0, 0, 0, 0, time.UTC) }
	all := []Statement{read(t, "A.r <- B.s"), read(t, "B.s <- D"), read(t, "A.r <- C.t"), read(t, "C.t <- D"), read(t, "C.t <- D.u"), read(t, "D.u <- D")}
	all[0].Expires, all[1].Expires, all[3].Expires, all[5].Expires = at(9), at(3), at(2), at(5)
	proof, ok := Prove(all, Role{"A", "r"}, "D")
	if !ok || !proof.Expires.Equal(at(5)) || !reflect.DeepEqual(proof.Statements, []int{2, 4, 5}) {
		t.Fatalf("got %v %v", ok, proof)
	}
}

// A long chain and a dense graph end in good time.
func TestManyStatements(t *testing.T) {
	var all []Statement
	for i := range 300 {
		all = append(all, read(t, fmt.Sprintf("P%d.r <- P%d.r", i, i+1)))
	}
	all = append(all, read(t, "P300.r <- me"))
	for i := range 30 {
		for j := range 30 {
			all = append(all, read(t, fmt.Sprintf("Q%d.r <- Q%d.r.r", i, j)))
		}
		all = append(all, read(t, fmt.Sprintf("Q%d.r <- Q%d", i, (i+1)%30)))
	}
	if proof, ok := Prove(all, Role{"P0", "r"}, "me"); !ok || len(proof.Statements) != 301 {
		t.Fatalf("got %v", proof)
	}
}

func ExampleProve() {
	statements := []Statement{
		{Head: Role{"testbed", "user"}, Body: []Term{{Principal: "uni", Link: "lab", Role: "member"}}},
		{Head: Role{"uni", "lab"}, Body: []Term{{Principal: "netlab"}}},
		{Head: Role{"netlab", "member"}, Body: []Term{{Principal: "alice"}}},
	}
	proof, ok := Prove(statements, Role{"testbed", "user"}, "alice")
	fmt.Println(ok)
	for _, i := range proof.Statements {
		fmt.Println(statements[i])
	}
	// Output:
	// true
	// testbed.user <- uni.lab.member
	// uni.lab <- netlab
	// netlab.member <- alice
}
