package startup

import (
	"bufio"
	"bytes"
	"context"
	_ "embed" // the scripts
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"

	"croft/drivers"
	"croft/request"
	"croft/slivers"
	"croft/urn"
)

// What runs in nodes; each file says what it is for.
var (
	//go:embed scripts/launch.sh
	launchScript string
	//go:embed scripts/supervise.sh
	superviseScript string
	//go:embed scripts/read.sh
	readScript string
	//go:embed scripts/end.sh
	endScript string
	//go:embed scripts/follow.sh
	followScript string
	//go:embed scripts/file.sh
	fileScript string
	//go:embed scripts/hosts.sh
	hostsScript string
)

// Root is the account that may do everything.
const Root = "root"

// Node is a running node, as steps reach it.
type Node struct {
	Driver drivers.Driver
	Sliver urn.URN
	// Dir is where the node keeps how its steps go; "" is /var/lib/croft-steps.
	Dir string
	// NoRoot says that what a request asks for must not be done as root: the
	// node's machine is not made anew when the node ends.
	NoRoot bool
}

// Attempt is one try at a step.
type Attempt struct {
	Step   request.StepName
	Number int // from 1
}

// Mode says what becomes of a command that has ended.
type Mode string

// The modes.
const (
	Once  Mode = "once"
	Again Mode = "again" // it is started anew, later and later
)

// Life is whether an attempt's supervisor is there.
type Life string

// The values of Life.
const (
	None  Life = "none" // never launched, as far as the node knows
	Alive Life = "alive"
	Gone  Life = "gone"
)

// Result is how an attempt goes, or went.
type Result struct {
	Life    Life
	Ended   bool // Status is known
	Status  int
	Outputs map[string]string
	Output  slivers.StepOutput
}

const (
	// maxOutputs and maxOutput bound what is read of a node.
	maxOutputs, maxOutput = 64 << 10, 64 << 10
	// complaint bounds what a script's standard error is quoted of.
	complaint = 1 << 10
)

func (n Node) dir(a Attempt) string {
	base := n.Dir
	if base == "" {
		base = "/var/lib/croft-steps"
	}
	return path.Join(base, string(a.Step), strconv.Itoa(a.Number))
}

// script runs one of the scripts as root.
func (n Node) script(ctx context.Context, text string, stdin io.Reader, stdout io.Writer, args ...string) error {
	return n.scriptAs(ctx, "", text, stdin, stdout, args...)
}

// worker is who does in the node what an account asks for: "" for root.
func (n Node) worker(account string) (string, error) {
	switch {
	case !n.NoRoot:
		return "", nil
	case account == Root:
		return "", refuse("the node gives root to nobody, and it has no other user")
	}
	return account, nil
}

func (n Node) scriptAs(ctx context.Context, user, text string, stdin io.Reader, stdout io.Writer, args ...string) error {
	said := &limited{most: complaint}
	err := n.Driver.Exec(ctx, n.Sliver, drivers.Command{
		User: user, Args: append([]string{"/bin/sh", "-c", text, "croft-step"}, args...), Stdin: stdin, Stdout: stdout, Stderr: said,
	})
	if err != nil {
		if text := strings.TrimSpace(said.String()); text != "" {
			err = fmt.Errorf("%w: %q", err, text)
		}
	}
	return err
}

// Launch starts an attempt, unless it has been started already, and waits for
// its end; started is called when it runs. command is shell text, run by an
// account. When ctx ends, Launch does; the attempt goes on.
func (n Node) Launch(ctx context.Context, a Attempt, account string, mode Mode, command string, started func()) error {
	if _, err := n.worker(account); err != nil {
		return err
	}
	heard := &listener{word: "started", tell: started}
	if err := n.script(ctx, launchScript, strings.NewReader(command), heard, n.dir(a), account, string(mode), superviseScript, strconv.Itoa(len(command))); err != nil {
		return fmt.Errorf("launching step %s: %w", a.Step, err)
	}
	return nil
}

// Read tells how an attempt goes.
func (n Node) Read(ctx context.Context, a Attempt) (Result, error) {
	out := &limited{most: maxOutputs + 2*maxOutput}
	err := n.script(ctx, readScript, nil, out, n.dir(a))
	if err != nil {
		return Result{}, fmt.Errorf("reading how step %s goes: %w", a.Step, err)
	}
	r, err := parseResult(out.Bytes())
	if err != nil {
		return Result{}, fmt.Errorf("reading how step %s goes: the node says %w", a.Step, err)
	}
	return r, nil
}

// parseResult reads what read.sh says. A node's root can have it say anything.
func parseResult(text []byte) (Result, error) {
	line, rest, _ := bytes.Cut(text, []byte("\n"))
	words := strings.Fields(string(line))
	if len(words) != 6 {
		return Result{}, fmt.Errorf("%.100q", line)
	}
	var r Result
	switch r.Life = Life(words[1]); r.Life {
	case None, Alive, Gone:
	default:
		return Result{}, fmt.Errorf("%.100q", line)
	}
	if words[0] != "-" {
		status, err := strconv.ParseUint(words[0], 10, 8)
		if err != nil {
			return Result{}, fmt.Errorf("status %.20q", words[0])
		}
		r.Ended, r.Status = true, int(status)
	}
	take := func(word string, most int) ([]byte, error) {
		n, err := strconv.Atoi(word)
		if err != nil || n < 0 || n > most || n > len(rest) {
			return nil, fmt.Errorf("a length of %.20q", word)
		}
		part := rest[:n:n]
		rest = rest[n:]
		return part, nil
	}
	outputs, err := take(words[2], maxOutputs)
	if err != nil {
		return Result{}, err
	}
	if r.Output.Head, err = take(words[3], maxOutput); err != nil {
		return Result{}, err
	}
	if r.Output.Tail, err = take(words[4], maxOutput); err != nil {
		return Result{}, err
	}
	if r.Output.Left, err = strconv.ParseInt(words[5], 10, 64); err != nil || r.Output.Left < 0 {
		return Result{}, fmt.Errorf("%.20q bytes left out", words[5])
	}
	r.Outputs = parseOutputs(outputs)
	return r, nil
}

// parseOutputs reads lines NAME=VALUE; of a name that stands twice the last
// counts. Other lines are passed over.
func parseOutputs(text []byte) map[string]string {
	out := map[string]string{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, maxOutputs+1)
	for lines.Scan() {
		name, value, ok := strings.Cut(strings.TrimSuffix(lines.Text(), "\r"), "=")
		if ok && name != "" {
			out[name] = strings.ToValidUTF8(value, "\ufffd")
		}
	}
	return out
}

// End ends what an attempt has started, daemons included.
func (n Node) End(ctx context.Context, a Attempt) error {
	if err := n.script(ctx, endScript, nil, nil, n.dir(a)); err != nil {
		return fmt.Errorf("ending step %s: %w", a.Step, err)
	}
	return nil
}

// Follow writes the output of an attempt as it grows, until it ends.
func (n Node) Follow(ctx context.Context, a Attempt, w io.Writer) error {
	if err := n.script(ctx, followScript, nil, w, n.dir(a)); err != nil {
		return fmt.Errorf("following step %s: %w", a.Step, err)
	}
	return nil
}

// Write writes a file that belongs to an account.
func (n Node) Write(ctx context.Context, f request.File, account string) error {
	as, err := n.worker(account)
	if err != nil {
		return err
	}
	err = n.scriptAs(ctx, as, fileScript, bytes.NewReader(f.Content), nil, f.Path, strconv.FormatUint(uint64(f.Mode&0o7777), 8), account)
	if err != nil {
		return fmt.Errorf("writing %s: %w", f.Path, err)
	}
	return nil
}

// SetHosts has the node find others by the lines of its hosts file; those that
// its users have written stay.
func (n Node) SetHosts(ctx context.Context, lines string) error {
	if err := n.script(ctx, hostsScript, strings.NewReader(lines), nil); err != nil {
		return fmt.Errorf("writing /etc/hosts: %w", err)
	}
	return nil
}

// limited keeps what is written to it up to a bound and passes over the rest.
type limited struct {
	bytes.Buffer
	most int
}

func (l *limited) Write(p []byte) (int, error) {
	if room := l.most - l.Len(); room > 0 {
		l.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// listener calls tell once when a word has been written to it.
type listener struct {
	word  string
	tell  func()
	heard []byte
}

func (l *listener) Write(p []byte) (int, error) {
	const enough = 256
	if l.tell != nil && len(l.heard) < enough {
		l.heard = append(l.heard, p[:min(len(p), enough)]...)
		if bytes.Contains(l.heard, []byte(l.word)) {
			l.tell()
			l.tell = nil
		}
	}
	return len(p), nil
}

// Failed reports the exit status of a script that ran and failed.
func Failed(err error) (status int, ok bool) {
	var exit *drivers.ExitError
	if errors.As(err, &exit) {
		return exit.Status, true
	}
	return 0, false
}
