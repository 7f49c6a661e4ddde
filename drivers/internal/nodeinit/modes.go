package nodeinit

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// Terminal modes as numbered by RFC 4254, section 8, and RFC 8160.
var (
	controlChars = map[byte]int{
		1: unix.VINTR, 2: unix.VQUIT, 3: unix.VERASE, 4: unix.VKILL, 5: unix.VEOF, 6: unix.VEOL,
		7: unix.VEOL2, 8: unix.VSTART, 9: unix.VSTOP, 10: unix.VSUSP, 12: unix.VREPRINT,
		13: unix.VWERASE, 14: unix.VLNEXT, 18: unix.VDISCARD,
	}
	inputModes = map[byte]uint32{
		30: unix.IGNPAR, 31: unix.PARMRK, 32: unix.INPCK, 33: unix.ISTRIP, 34: unix.INLCR, 35: unix.IGNCR,
		36: unix.ICRNL, 37: unix.IUCLC, 38: unix.IXON, 39: unix.IXANY, 40: unix.IXOFF, 41: unix.IMAXBEL, 42: unix.IUTF8,
	}
	localModes = map[byte]uint32{
		50: unix.ISIG, 51: unix.ICANON, 52: unix.XCASE, 53: unix.ECHO, 54: unix.ECHOE, 55: unix.ECHOK,
		56: unix.ECHONL, 57: unix.NOFLSH, 58: unix.TOSTOP, 59: unix.IEXTEN, 60: unix.ECHOCTL, 61: unix.ECHOKE, 62: unix.PENDIN,
	}
	outputModes = map[byte]uint32{
		70: unix.OPOST, 71: unix.OLCUC, 72: unix.ONLCR, 73: unix.OCRNL, 74: unix.ONOCR, 75: unix.ONLRET,
	}
)

// applyModes changes a terminal's settings to what a client says of its own.
// What it can't read it leaves.
func applyModes(t *unix.Termios, modes []byte) {
	const opcodesEnd, argumentless = 0, 160
	for len(modes) >= 5 && modes[0] != opcodesEnd && modes[0] < argumentless {
		op, value := modes[0], binary.BigEndian.Uint32(modes[1:5])
		modes = modes[5:]
		if at, ok := controlChars[op]; ok {
			t.Cc[at] = byte(value)
			if value == 255 { // RFC 4254: the character is not used
				t.Cc[at] = 0
			}
		}
		for _, m := range []struct {
			bits  map[byte]uint32
			flags *uint32
		}{{inputModes, &t.Iflag}, {localModes, &t.Lflag}, {outputModes, &t.Oflag}} {
			bit, ok := m.bits[op]
			switch {
			case ok && value != 0:
				*m.flags |= bit
			case ok:
				*m.flags &^= bit
			}
		}
	}
}
