package namespace

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// The fall-back image is made of the host's own system, by an allow-list: the
// programs and libraries below /usr, and an /etc that is generated, with what
// is public of the host's. Everything else of the host is not there at all.

// systemTrees are directories of programs and libraries. On hosts where one is
// a symbolic link into /usr, it is that in the node, too.
var systemTrees = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}

// siteTree is what the administrator has put beside the system. Nobody but
// the administrator knows what that is, so it is masked.
const siteTree = "/usr/local"

var siteDirs = []string{"bin", "etc", "games", "include", "lib", "sbin", "share", "src"}

// publicEtc are files and directories of /etc that are taken from the host,
// where it has them: nothing of a host's own making, and nothing that not
// everybody on the host may read.
var publicEtc = []string{
	"adduser.conf", "alternatives", "bash.bashrc", "bindresvport.blacklist", "ca-certificates.conf",
	"debian_version", "deluser.conf", "ethertypes", "fonts", "gai.conf", "host.conf", "inputrc", "iproute2",
	"issue", "issue.net", "java-11-openjdk", "java-17-openjdk", "java-21-openjdk", "ld.so.cache", "ld.so.conf",
	"ld.so.conf.d", "libaudit.conf", "locale.alias", "localtime", "login.defs", "lsb-release", "magic",
	"magic.mime", "manpath.config", "mime.types", "mke2fs.conf", "netconfig", "networks", "os-release",
	"perl", "pki/tls/certs", "pki/ca-trust/extracted", "protocols", "python3", "python3.11", "python3.12", "python3.13",
	"redhat-release", "rpc", "services", "shells", "skel/.bash_logout", "skel/.bashrc", "skel/.profile",
	"ssl/certs", "ssl/openssl.cnf", "system-release", "terminfo", "timezone", "vim", "xattr.conf",
	"security/access.conf", "security/capability.conf", "security/group.conf", "security/limits.conf",
	"security/namespace.conf", "security/pam_env.conf", "security/time.conf",
}

const maxPublicFile = 4 << 20

// systemPasswd are the accounts of Debian's base system, whose numbers are
// the same everywhere.
const systemPasswd = `root:x:0:0:root:/root:/bin/bash
daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin
bin:x:2:2:bin:/bin:/usr/sbin/nologin
sys:x:3:3:sys:/dev:/usr/sbin/nologin
sync:x:4:65534:sync:/bin:/bin/sync
games:x:5:60:games:/usr/games:/usr/sbin/nologin
man:x:6:12:man:/var/cache/man:/usr/sbin/nologin
lp:x:7:7:lp:/var/spool/lpd:/usr/sbin/nologin
mail:x:8:8:mail:/var/mail:/usr/sbin/nologin
news:x:9:9:news:/var/spool/news:/usr/sbin/nologin
uucp:x:10:10:uucp:/var/spool/uucp:/usr/sbin/nologin
proxy:x:13:13:proxy:/bin:/usr/sbin/nologin
www-data:x:33:33:www-data:/var/www:/usr/sbin/nologin
backup:x:34:34:backup:/var/backups:/usr/sbin/nologin
list:x:38:38:Mailing List Manager:/var/list:/usr/sbin/nologin
irc:x:39:39:ircd:/run/ircd:/usr/sbin/nologin
_apt:x:42:65534::/nonexistent:/usr/sbin/nologin
sshd:x:101:65534::/run/sshd:/usr/sbin/nologin
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
`

var systemGroups = []struct {
	name string
	gid  int
}{
	{"root", 0}, {"daemon", 1}, {"bin", 2}, {"sys", 3}, {"adm", 4}, {"tty", 5}, {"disk", 6}, {"lp", 7},
	{"mail", 8}, {"news", 9}, {"uucp", 10}, {"man", 12}, {"proxy", 13}, {"kmem", 15}, {"dialout", 20},
	{"fax", 21}, {"voice", 22}, {"cdrom", 24}, {"floppy", 25}, {"tape", 26}, {"sudo", 27}, {"audio", 29},
	{"dip", 30}, {"www-data", 33}, {"backup", 34}, {"operator", 37}, {"list", 38}, {"irc", 39}, {"src", 40},
	{"shadow", 42}, {"utmp", 43}, {"video", 44}, {"sasl", 45}, {"plugdev", 46}, {"staff", 50}, {"games", 60},
	{"users", 100}, {"nogroup", 65534},
}

const shadowGroup = 42

// systemFiles are files of /etc that are the same on every node.
var systemFiles = map[string]string{
	"passwd": systemPasswd,
	"nsswitch.conf": "passwd: files\ngroup: files\nshadow: files\ngshadow: files\n" +
		"hosts: files dns\nnetworks: files\nprotocols: files\nservices: files\nethers: files\nrpc: files\n",
	"resolv.conf": "# A node reaches no name server unless its experiment brings one.\n",
	"environment": "",
	"fstab":       "",
	"motd":        "",
	"subuid":      "",
	"subgid":      "",
	"profile": `if [ "$(id -u)" -eq 0 ]; then
	PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
else
	PATH=/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin:/usr/games
fi
export PATH
if [ "${PS1-}" ] && [ "${BASH-}" ] && [ -r /etc/bash.bashrc ]; then
	. /etc/bash.bashrc
fi
for script in /etc/profile.d/*.sh; do
	if [ -r "$script" ]; then
		. "$script"
	fi
done
unset script
`,
	"sudoers": `Defaults env_reset
Defaults secure_path="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
root ALL=(ALL:ALL) ALL
%sudo ALL=(ALL:ALL) ALL
@includedir /etc/sudoers.d
`,
	"pam.d/other":   pamUnix,
	"pam.d/login":   pamUnix,
	"pam.d/sudo":    pamUnix,
	"pam.d/sudo-i":  pamUnix,
	"pam.d/passwd":  "password required pam_unix.so sha512\n",
	"pam.d/su":      pamRootOK + pamUnix,
	"pam.d/su-l":    pamRootOK + pamUnix,
	"pam.d/runuser": pamRootOK + pamUnix, "pam.d/runuser-l": pamRootOK + pamUnix,
	"pam.d/chfn": pamRootOK + pamUnix, "pam.d/chsh": pamRootOK + pamUnix,
	"pam.d/chpasswd": pamRootOK + pamUnix, "pam.d/newusers": pamRootOK + pamUnix,
	"pam.d/useradd": pamRootOK + pamUnix, "pam.d/groupadd": pamRootOK + pamUnix,
}

const (
	pamRootOK = "auth sufficient pam_rootok.so\n"
	pamUnix   = "auth required pam_unix.so\naccount required pam_unix.so\n" +
		"password required pam_unix.so sha512\nsession required pam_unix.so\n"
)

// systemDirs are the other directories of a node.
var systemDirs = map[string]fs.FileMode{
	"boot": 0o755, "dev": 0o755, "home": 0o755, "media": 0o755, "mnt": 0o755, "opt": 0o755, "proc": 0o555,
	"root": 0o700, "run": 0o755, "srv": 0o755, "sys": 0o555, "tmp": 0o777 | fs.ModeSticky,
	"etc/profile.d": 0o755, "etc/opt": 0o755, "etc/sudoers.d": 0o755, "etc/security/limits.d": 0o755,
	"var/cache": 0o755, "var/lib": 0o755, "var/local": 0o755, "var/log": 0o755, "var/mail": 0o755,
	"var/opt": 0o755, "var/spool": 0o755, "var/tmp": 0o777 | fs.ModeSticky,
}

// entry is one file of a generated layer: a directory, a symbolic link, a
// whiteout (which hides what lower layers have of the name), or a file.
type entry struct {
	kind   fs.FileMode // fs.ModeDir, fs.ModeSymlink, fs.ModeCharDevice for a whiteout, 0
	mode   fs.FileMode
	gid    int
	data   string // content, or target of a link
	opaque bool   // a directory that hides what is below
}

// skeleton is the generated part of the fall-back image: the root layer and,
// for each tree of the host's, a layer that masks parts of it.
type skeleton struct {
	layers map[string]map[string]entry // layer → path in it → entry
	trees  []string                    // of the host's, to be mounted
}

const rootLayer = "root"

// maskLayer names the layer over a tree of the host's: "/usr" → "mask-usr".
func maskLayer(tree string) string { return "mask-" + strings.ReplaceAll(tree[1:], "/", "-") }

// newSkeleton reads what is public of the host's system below root (the
// host's "/", except in tests). Protected paths are masked.
func newSkeleton(root string, protected []string) (*skeleton, error) {
	s := &skeleton{layers: map[string]map[string]entry{rootLayer: {}}}
	top := s.layers[rootLayer]
	for name, mode := range systemDirs {
		top[name] = entry{kind: fs.ModeDir, mode: mode}
	}
	for _, tree := range systemTrees {
		st, err := os.Lstat(filepath.Join(root, tree))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look at the host's system: %w", err)
		}
		if st.Mode()&fs.ModeSymlink != 0 {
			to, err := os.Readlink(filepath.Join(root, tree))
			if err != nil {
				return nil, fmt.Errorf("look at the host's system: %w", err)
			}
			top[tree[1:]] = entry{kind: fs.ModeSymlink, data: to}
			continue
		}
		top[tree[1:]] = entry{kind: fs.ModeDir, mode: 0o755}
		s.trees = append(s.trees, tree)
		if err := s.mask(root, tree, protected); err != nil {
			return nil, err
		}
	}
	for _, name := range publicEtc {
		if err := s.take(root, "etc/"+name); err != nil {
			return nil, err
		}
	}
	for name, text := range systemFiles {
		top["etc/"+name] = entry{mode: 0o644, data: text}
	}
	top["etc/sudoers"] = entry{mode: 0o440, data: systemFiles["sudoers"]}
	top["etc/mtab"] = entry{kind: fs.ModeSymlink, data: "/proc/self/mounts"}
	var group, gshadow, shadow strings.Builder
	for _, g := range systemGroups {
		fmt.Fprintf(&group, "%s:x:%d:\n", g.name, g.gid)
		fmt.Fprintf(&gshadow, "%s:*::\n", g.name)
	}
	for line := range strings.Lines(systemPasswd) {
		name, _, _ := strings.Cut(line, ":")
		fmt.Fprintf(&shadow, "%s:*:19000:0:99999:7:::\n", name)
	}
	top["etc/group"] = entry{mode: 0o644, data: group.String()}
	top["etc/gshadow"] = entry{mode: 0o640, gid: shadowGroup, data: gshadow.String()}
	top["etc/shadow"] = entry{mode: 0o640, gid: shadowGroup, data: shadow.String()}
	return s, nil
}

// take copies a file or directory of the host's into the root layer, as far
// as everybody may read it.
func (s *skeleton) take(root, name string) error {
	err := filepath.WalkDir(filepath.Join(root, name), func(at string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, at)
		if err != nil {
			return err
		}
		st, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case d.IsDir() && st.Mode().Perm()&0o005 != 0o005:
			return filepath.SkipDir
		case d.IsDir():
			s.layers[rootLayer][rel] = entry{kind: fs.ModeDir, mode: 0o755}
		case strings.HasSuffix(rel, ".gz"):
			// Manual pages among the alternatives, of which there are hundreds.
		case st.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(at)
			if err != nil {
				return err
			}
			s.layers[rootLayer][rel] = entry{kind: fs.ModeSymlink, data: to}
		case st.Mode().IsRegular() && st.Mode().Perm()&0o004 != 0 && st.Size() <= maxPublicFile:
			data, err := os.ReadFile(at)
			if err != nil {
				return err
			}
			s.layers[rootLayer][rel] = entry{mode: st.Mode().Perm() & 0o755, data: string(data)}
		}
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the host's system: %w", err)
	}
	return nil
}

// mask makes the layer over one tree of the host's.
func (s *skeleton) mask(root, tree string, protected []string) error {
	layer := map[string]entry{}
	s.layers[maskLayer(tree)] = layer
	if within(siteTree, tree) {
		rel, _ := filepath.Rel(tree, siteTree)
		layer[rel] = entry{kind: fs.ModeDir, mode: 0o755, opaque: true}
		for _, sub := range siteDirs {
			layer[path.Join(rel, sub)] = entry{kind: fs.ModeDir, mode: 0o755}
		}
		layer[path.Join(rel, "man")] = entry{kind: fs.ModeSymlink, data: "share/man"}
	}
	for _, p := range protected {
		if p == tree || p == "/" {
			return fmt.Errorf("the host's system cannot be an image: its %s holds nothing but what must not be seen", tree)
		}
		if !within(p, tree) || within(p, siteTree) {
			continue
		}
		rel, _ := filepath.Rel(tree, p)
		for dir := path.Dir(rel); dir != "."; dir = path.Dir(dir) {
			// A directory of the upper layer gives the merged one its mode.
			mode := fs.FileMode(0o755)
			if st, err := os.Stat(filepath.Join(root, tree, dir)); err == nil {
				mode = st.Mode().Perm()
			}
			layer[dir] = entry{kind: fs.ModeDir, mode: mode}
		}
		layer[rel] = entry{kind: fs.ModeCharDevice}
	}
	return nil
}

// names returns the paths of a layer, parents before children.
func names(layer map[string]entry) []string {
	var out []string
	for name := range layer {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// hash names the content of a skeleton.
func (s *skeleton) hash() string {
	h := sha256.New()
	var layers []string
	for name := range s.layers {
		layers = append(layers, name)
	}
	slices.Sort(layers)
	for _, layer := range layers {
		for _, name := range names(s.layers[layer]) {
			fmt.Fprintf(h, "%q %q %+q\n", layer, name, fmt.Sprint(s.layers[layer][name]))
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// write makes the layers below dir.
func (s *skeleton) write(dir string) error {
	for layer, entries := range s.layers {
		base := filepath.Join(dir, layer)
		if err := os.MkdirAll(base, 0o755); err != nil {
			return fmt.Errorf("write the system image: %w", err)
		}
		for _, name := range names(entries) {
			if err := entries[name].write(filepath.Join(base, name)); err != nil {
				return fmt.Errorf("write the system image: %w", err)
			}
		}
	}
	return nil
}

func (e entry) write(at string) error {
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	switch e.kind {
	case fs.ModeDir:
		if err := os.MkdirAll(at, 0o755); err != nil {
			return err
		}
		if e.opaque {
			if err := unix.Setxattr(at, "user.overlay.opaque", []byte("y"), 0); err != nil {
				return fmt.Errorf("mask %s: %w (the state directory's file system must have user attributes)", at, err)
			}
		}
		return os.Chmod(at, e.mode)
	case fs.ModeSymlink:
		return os.Symlink(e.data, at)
	case fs.ModeCharDevice:
		return unix.Mknod(at, unix.S_IFCHR, 0)
	}
	if err := os.WriteFile(at, []byte(e.data), e.mode); err != nil {
		return err
	}
	if err := os.Lchown(at, 0, e.gid); err != nil {
		return err
	}
	return os.Chmod(at, e.mode)
}

// system returns the overlays of the fall-back image, whose generated part it
// writes if it is not there yet.
func (d *Driver) system() ([]overlay, string, error) {
	d.systemMu.Lock()
	defer d.systemMu.Unlock()
	if d.skeleton == nil {
		s, err := newSkeleton("/", d.protected)
		if err != nil {
			return nil, "", err
		}
		d.skeleton, d.skeletonHash = s, s.hash()
	}
	dir := d.state.in("system", d.skeletonHash)
	if _, err := os.Stat(dir); err != nil {
		tmp := dir + ".tmp"
		if err := removeTree(tmp); err != nil {
			return nil, "", err
		}
		if err := d.skeleton.write(tmp); err != nil {
			os.RemoveAll(tmp)
			return nil, "", err
		}
		if err := os.Rename(tmp, dir); err != nil {
			os.RemoveAll(tmp)
			return nil, "", fmt.Errorf("write the system image: %w", err)
		}
	}
	out := []overlay{{target: "/", disk: "root", layers: []string{filepath.Join(dir, rootLayer)}}}
	for _, tree := range d.skeleton.trees {
		out = append(out, overlay{target: tree, disk: "tree" + strings.ReplaceAll(tree, "/", "-"),
			layers: []string{filepath.Join(dir, maskLayer(tree)), tree}})
	}
	return out, d.skeletonHash, nil
}
