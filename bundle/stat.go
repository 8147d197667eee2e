package bundle

import "syscall"

// stat is what tells whether a file is still the one it was.
type stat struct {
	size, mtime, ctime int64 // bytes, nanoseconds since 1970
	inode              uint64
	mode               uint32
}

func lstat(name string) (stat, error) {
	var st syscall.Stat_t
	for {
		err := syscall.Lstat(name, &st)
		if err == syscall.EINTR { // network file systems mounted "intr"
			continue
		}
		return statOf(&st), err
	}
}

func statOf(st *syscall.Stat_t) stat {
	return stat{size: st.Size, mtime: st.Mtim.Nano(), ctime: st.Ctim.Nano(), inode: st.Ino, mode: st.Mode}
}
