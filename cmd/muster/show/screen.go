package show

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/musterhq/muster/cmd/muster/view"
)

// Size gives the width and height of a terminal, in characters.
type Size func() (width, height int)

// Terminal tells whether out is a terminal that can redraw, and gives its size as it is at each call.
func Terminal(out io.Writer) (Size, bool) {
	file, ok := out.(*os.File)
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

// ColourWanted obeys NO_COLOR (https://no-color.org): any value that is not empty turns colour off.
func ColourWanted() bool { return os.Getenv("NO_COLOR") == "" }

// Screen keeps a picture at the foot of a terminal and redraws it in place; what is printed above it scrolls away as
// usual. It is not safe for concurrent use.
type Screen struct {
	out    io.Writer
	size   Size
	colour bool
	drawn  int // lines of the picture that stand on the terminal
	last   []string
}

// NewScreen draws on out, which Terminal approved.
func NewScreen(out io.Writer, size Size, colour bool) *Screen {
	return &Screen{out: out, size: size, colour: colour}
}

// Draw replaces the picture. Lines wider than the terminal are cut, and so are those that it has no room for, for a
// picture that scrolls can not be redrawn.
func (s *Screen) Draw(lines []string) {
	width, height := s.size()
	if room := height - 1; len(lines) > room {
		hidden := len(lines) - room + 1
		lines = append(append([]string{}, lines[:max(0, room-1)]...), fmt.Sprintf("… %d more lines", hidden))
	}
	var text strings.Builder
	text.WriteString(s.erase())
	for _, line := range lines {
		line = cut(line, width)
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
	_, _ = io.WriteString(s.out, s.erase()+line+"\n")
	s.drawn = 0
	if s.last != nil {
		s.Draw(s.last)
	}
}

// Leave lets the picture stand and writes on below it.
func (s *Screen) Leave() { s.drawn, s.last = 0, nil }

// erase moves up to the picture's first line and clears from there on.
func (s *Screen) erase() string {
	if s.drawn == 0 {
		return ""
	}
	return fmt.Sprintf("\x1b[%dA\x1b[J", s.drawn)
}

func cut(line string, width int) string {
	if utf8.RuneCountInString(line) <= width {
		return line
	}
	return string([]rune(line)[:max(0, width-1)]) + "…"
}

// stateColours paint a state's word where it stands in a table. The word itself carries the meaning.
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

// paint colours the first word of a line that is a state, and leaves the width as it is.
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
