package compile

import (
	"fmt"
	"strings"
)

// expansion says what ${...} means in a text.
type expansion int

const (
	// expand replaces ${path}, and turns $${ into a literal ${.
	expand expansion = iota
	// reverseExpand keeps ${ and replaces $${path}; it is meant for shell scripts.
	reverseExpand
	// verbatim replaces nothing.
	verbatim
)

// piece is a part of a text: a literal, or a path to be replaced by its value.
type piece struct {
	literal string
	path    []string
}

// isPath reports whether the piece is a path.
func (p piece) isPath() bool { return p.path != nil }

// parse splits a text into pieces. Its errors quote placeholders only, as the surrounding text may be secret.
func parse(text string, mode expansion) ([]piece, error) {
	if mode == verbatim || !strings.Contains(text, "${") {
		return []piece{{literal: text}}, nil
	}
	var (
		pieces  []piece
		literal strings.Builder
	)
	for len(text) > 0 {
		opening, escaped := "${", "$${"
		if mode == reverseExpand {
			opening, escaped = "$${", "${"
		}
		dollar := strings.IndexByte(text, '$')
		if dollar < 0 {
			break
		}
		literal.WriteString(text[:dollar])
		text = text[dollar:]
		switch {
		case mode == expand && strings.HasPrefix(text, escaped):
			literal.WriteString("${")
			text = text[len(escaped):]
		case strings.HasPrefix(text, opening):
			path, rest, err := placeholder(text[len(opening):])
			if err != nil {
				return nil, err
			}
			if literal.Len() > 0 {
				pieces = append(pieces, piece{literal: literal.String()})
				literal.Reset()
			}
			pieces, text = append(pieces, piece{path: path}), rest
		default:
			literal.WriteByte('$')
			text = text[1:]
		}
	}
	literal.WriteString(text)
	if literal.Len() > 0 || len(pieces) == 0 {
		pieces = append(pieces, piece{literal: literal.String()})
	}
	return pieces, nil
}

// placeholder parses a path up to its closing brace, and returns the rest.
func placeholder(text string) (path []string, rest string, err error) {
	inner, rest, closed := strings.Cut(text, "}")
	if !closed {
		return nil, "", fmt.Errorf("a placeholder that begins with ${ has no closing }: write $${ for the characters themselves")
	}
	inner = strings.TrimSpace(inner)
	path = strings.Split(inner, ".")
	for _, name := range path {
		if !isName(name) {
			return nil, "", fmt.Errorf("${%s} is not a path of names such as ${resources.db.host}: write $${ for the characters ${ themselves",
				shortened(inner))
		}
	}
	return path, rest, nil
}

// isName reports whether the text is a valid path element.
func isName(text string) bool {
	for i := range len(text) {
		switch c := text[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return text != ""
}

// sameName reports whether two path elements are equal, with - and _ treated as the same.
func sameName(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		if a[i] != b[i] && !(isDash(a[i]) && isDash(b[i])) {
			return false
		}
	}
	return true
}

// underscored returns a path element with its - replaced by _: equal for two elements that are sameName.
func underscored(name string) string { return strings.ReplaceAll(name, "-", "_") }

func isDash(c byte) bool { return c == '-' || c == '_' }

// shortened truncates a text for error messages.
func shortened(text string) string {
	const enough = 60
	if len(text) <= enough {
		return text
	}
	return strings.ToValidUTF8(text[:enough], "") + "…"
}

// written returns the path as it is written in specs.
func written(path []string) string { return "${" + strings.Join(path, ".") + "}" }
