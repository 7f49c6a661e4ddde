package relay

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Command is the command line of a relay, after the program's name.
func Command(pipes []Pipe) ([]string, error) {
	data, err := json.Marshal(pipes)
	return []string{Word, string(data)}, err
}

// Main runs a relay, whose command line after Word is args, and returns the
// exit status of the process. It ends when it is killed.
func Main(args []string) int {
	if err := serve(args); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", Word, err)
		return 1
	}
	return 0
}

func serve(args []string) error {
	var pipes []Pipe
	if len(args) != 1 {
		return fmt.Errorf("it is started by croft itself, not by hand")
	}
	if err := json.Unmarshal([]byte(args[0]), &pipes); err != nil {
		return fmt.Errorf("read the pipes: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("keep others from looking in: %w", err)
	}
	sockets, err := receive(2 * len(pipes))
	if err != nil {
		return err
	}
	failed := make(chan error)
	var ready sync.WaitGroup
	for i, p := range pipes {
		a, b := sockets[2*i], sockets[2*i+1]
		ready.Add(2)
		go newDirection(a, b, newLine(p.There)).run(ready.Done, failed)
		go newDirection(b, a, newLine(p.Back)).run(ready.Done, failed)
	}
	go func() {
		ready.Wait()
		unix.SendmsgN(SyncFD, []byte{1}, nil, nil, unix.MSG_NOSIGNAL) // the manager may be gone
		unix.Close(SyncFD)
	}()
	return <-failed
}

// receive takes the sockets that the manager sends.
func receive(count int) ([]int, error) {
	var out []int
	for len(out) < count {
		data, control := make([]byte, 1), make([]byte, unix.CmsgSpace(4*SocketsAtOnce))
		n, room, _, _, err := unix.Recvmsg(SyncFD, data, control, unix.MSG_CMSG_CLOEXEC)
		if n != 1 || err != nil {
			return nil, fmt.Errorf("the manager ended before it had noted this relay")
		}
		messages, err := unix.ParseSocketControlMessage(control[:room])
		if err != nil || len(messages) != 1 {
			return nil, fmt.Errorf("the manager sent no sockets")
		}
		fds, err := unix.ParseUnixRights(&messages[0])
		if err != nil || len(fds) == 0 {
			return nil, fmt.Errorf("the manager sent no sockets")
		}
		out = append(out, fds...)
	}
	if len(out) != count {
		return nil, fmt.Errorf("the manager sent %d sockets for %d pipes", len(out), count/2)
	}
	return out, nil
}
