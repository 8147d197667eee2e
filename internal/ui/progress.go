package ui

import (
	"io"
	"sync"
	"time"
)

// Progress is one line on stderr that changes in place. Where stderr is no
// terminal, or a dumb one, it writes nothing at all. It may be used from
// several goroutines.
type Progress struct {
	s     *Streams
	mu    sync.Mutex
	last  time.Time
	shown bool
}

// interval between two changes: faster is not read, and floods slow lines.
const interval = 100 * time.Millisecond

// Progress starts a line; nothing is shown before the first Set.
func (s *Streams) Progress() *Progress { return &Progress{s: s} }

// Set shows a text, cut to the width of the terminal. Calls that come too soon
// after the one before are dropped.
func (p *Progress) Set(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.s.Now()
	if !p.s.ErrTTY || p.s.Dumb || (p.shown && now.Sub(p.last) < interval) {
		return
	}
	p.last, p.shown = now, true
	width := p.s.Width
	if width == 0 {
		width = 80
	}
	_, _ = io.WriteString(p.s.Err, "\r"+Cut(Clean(text), width-1)+"\x1b[K")
}

// Done takes the line away.
func (p *Progress) Done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		_, _ = io.WriteString(p.s.Err, "\r\x1b[K")
		p.shown = false
	}
}
