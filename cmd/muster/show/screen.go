package show

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/musterhq/muster/cmd/muster/view"
	"github.com/musterhq/muster/internal/plain"
)

// Size gives the width and height of a terminal, in characters.
type Size func() (width, height int)

// Terminal reports whether out is a terminal that can be redrawn, and returns a function that gives its current size.
func Terminal(out io.Writer) (Size, bool) {
	file, ok := fileOf(out).(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) || os.Getenv("TERM") == "dumb" {
		return nil, false
	}
	return func() (int, int) {
		width, height, err := term.GetSize(int(file.Fd()))
		if err != nil || width <= 0 || height <= 0 {
			return 80, 24
		}
		return width, height
	}, true
}

// ColourWanted reports whether output may be coloured: any non-empty NO_COLOR disables it (https://no-color.org).
func ColourWanted() bool { return os.Getenv("NO_COLOR") == "" }

// Screen keeps a picture at the bottom of a terminal and redraws it in place; lines printed above it scroll as usual.
// Control characters in the lines are escaped. It is not safe for concurrent use.
type Screen struct {
	out    io.Writer
	size   Size
	colour bool
	drawn  int // lines of the picture that stand on the terminal
	last   []string
}

// NewScreen returns a Screen that draws on out, a terminal according to Terminal.
func NewScreen(out io.Writer, size Size, colour bool) *Screen {
	return &Screen{out: fileOf(out), size: size, colour: colour}
}

// Draw replaces the picture. Lines wider than the terminal are truncated and lines beyond its height are dropped, since
// a picture that has scrolled cannot be redrawn.
func (s *Screen) Draw(lines []string) {
	width, height := s.size()
	if room := height - 1; len(lines) > room {
		hidden := len(lines) - room + 1
		lines = append(append([]string{}, lines[:max(0, room-1)]...), fmt.Sprintf("… %d more lines", hidden))
	}
	var text strings.Builder
	text.WriteString(s.erase())
	for _, line := range lines {
		line = plain.Cut(line, width)
		if s.colour {
			line = paint(line)
		}
		text.WriteString(line + "\n")
	}
	s.drawn, s.last = len(lines), lines
	_, _ = io.WriteString(s.out, text.String())
}

// Print writes a line above the picture.
func (s *Screen) Print(line string) {
	_, _ = io.WriteString(s.out, s.erase()+plain.Text(line)+"\n")
	s.drawn = 0
	if s.last != nil {
		s.Draw(s.last)
	}
}

// Leave keeps the picture on the screen; later output goes below it.
func (s *Screen) Leave() { s.drawn, s.last = 0, nil }

// erase returns the escape sequence that moves to the picture's first line and clears everything below.
func (s *Screen) erase() string {
	if s.drawn == 0 {
		return ""
	}
	return fmt.Sprintf("\x1b[%dA\x1b[J", s.drawn)
}

// stateColours are the colours of the states in a table. They are redundant: the word itself carries the meaning.
var stateColours = map[view.State]string{
	view.Pending:   "33", // yellow
	view.Starting:  "36", // cyan
	view.Running:   "36",
	view.Admitted:  "32", // green
	view.Completed: "32",
	view.Evicting:  "33",
	view.Suspended: "33",
	view.Failed:    "31", // red
}

// paint colours the first word of a line that is a state. The displayed width does not change.
func paint(line string) string {
	for start := 0; start < len(line); {
		end := start + strings.IndexByte(line[start:]+" ", ' ')
		if colour, ok := stateColours[view.State(line[start:end])]; ok {
			return line[:start] + "\x1b[" + colour + "m" + line[start:end] + "\x1b[0m" + line[end:]
		}
		start = end + 1
	}
	return line
}
