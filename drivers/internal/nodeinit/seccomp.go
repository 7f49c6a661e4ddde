package nodeinit

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Address families that a node may open sockets of. All of them are kept
// apart by network namespaces; some that are not in the list (AF_VSOCK, by
// which a virtual machine talks to its hypervisor) know no namespaces at all
// and would lead out of the node.
var families = []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK, unix.AF_PACKET}

// System calls that act on the whole machine, read what is not the node's, or
// get around the list of families.
var refused = []uint32{
	unix.SYS_SYSLOG,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
	unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
	unix.SYS_OPEN_BY_HANDLE_AT,
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_ADJTIMEX, unix.SYS_CLOCK_ADJTIME,
}

// Offsets in the kernel's struct seccomp_data.
const (
	offsetNumber = 0
	offsetArch   = 4
	offsetArg0   = 16 // low half, on a little-endian machine
)

// x32Bit marks the system calls of amd64's x32 ABI, which has numbers of its
// own for the same calls.
const x32Bit = 0x40000000

func auditArch() (uint32, error) {
	switch runtime.GOARCH {
	case "amd64":
		return unix.AUDIT_ARCH_X86_64, nil
	case "arm64":
		return unix.AUDIT_ARCH_AARCH64, nil
	}
	return 0, fmt.Errorf("namespace nodes know amd64 and arm64 machines, not %s", runtime.GOARCH)
}

func errno(e unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(e) }

// program assembles the filter. Programs of another ABI than the machine's
// (32-bit ones) get ENOSYS.
func program(arch uint32) []unix.SockFilter {
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	equal := func(k uint32, yes, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: k, Jt: yes, Jf: no}
	}
	ret := func(k uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k}
	}
	p := []unix.SockFilter{
		load(offsetArch),
		equal(arch, 1, 0),
		ret(errno(unix.ENOSYS)),
		load(offsetNumber),
		{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, K: x32Bit, Jt: 0, Jf: 1},
		ret(errno(unix.ENOSYS)),
	}
	for _, nr := range refused {
		p = append(p, equal(nr, 0, 1), ret(errno(unix.EPERM)))
	}
	p = append(p,
		equal(unix.SYS_SOCKET, 1, 0),
		ret(unix.SECCOMP_RET_ALLOW),
		load(offsetArg0))
	for _, f := range families {
		p = append(p, equal(f, 0, 1), ret(unix.SECCOMP_RET_ALLOW))
	}
	return append(p, ret(errno(unix.EAFNOSUPPORT)))
}

// filterSystemCalls puts the filter on the calling thread and everything that
// will come of it.
func filterSystemCalls() error {
	arch, err := auditArch()
	if err != nil {
		return err
	}
	p := program(arch)
	prog := unix.SockFprog{Len: uint16(len(p)), Filter: &p[0]}
	if _, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog))); e != 0 {
		return fmt.Errorf("filter the node's system calls: %w (the kernel needs CONFIG_SECCOMP_FILTER)", e)
	}
	return nil
}
