package jobset

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"sync"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
)

// Bounds of the patterns of failure rules. The API accepts nothing near them: what exceeds them was stored before the API
// had its own bounds. Time to match grows with the number of instructions, for each byte of a message.
const (
	// mostText is the longest pattern, in bytes: the API once accepted 1,024 characters.
	mostText = 4096
	// mostInstructions are those of one pattern, mostOfPolicy those of all patterns of a failure policy.
	mostInstructions, mostOfPolicy = 4096, 16384
	// mostBytes is what the compiled patterns of one failure policy may occupy, and what the cache may.
	mostBytes = 16 << 20
)

// pattern is a compiled pattern, or why it cannot be used.
type pattern struct {
	expression *regexp.Regexp
	err        error
	size       programSize
}

// programSize is how large a pattern is once it is compiled: its instructions, and about how much memory it occupies.
type programSize struct{ instructions, bytes int }

// usablePatterns returns the compiled patterns of each rule, and why the first of those left out cannot be used. Once the
// policy exceeds its bounds, no more of its patterns are compiled.
func usablePatterns(policy *jobset.FailurePolicy) (usable [][]*regexp.Regexp, unusable error) {
	var all programSize
	usable = make([][]*regexp.Regexp, len(policy.Rules))
	for i := range policy.Rules {
		for _, text := range policy.Rules[i].OnJobFailureMessagePatterns {
			p := pattern{err: errTogether}
			if all.instructions <= mostOfPolicy && all.bytes <= mostBytes {
				p = compiled.of(text)
				all.instructions += p.size.instructions
				all.bytes += p.size.bytes
			}
			if p.err == nil {
				usable[i] = append(usable[i], p.expression)
			} else if unusable == nil {
				unusable = fmt.Errorf("pattern %.64q of rule %s: %w", text, ruleName(&policy.Rules[i], i), p.err)
			}
		}
	}
	return usable, unusable
}

// errTogether says why a pattern is not compiled that is in order by itself.
var errTogether = errors.New("the patterns before it are too large together")

// patterns caches compiled patterns by their text: the Jobs of a JobSet fail one after the other, and many JobSets have
// the same patterns. They are compiled one at a time, whoever asks.
type patterns struct {
	mu     sync.Mutex
	byText map[string]pattern
	bytes  int
}

var compiled = &patterns{byText: map[string]pattern{}}

func (p *patterns) of(text string) pattern {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known, ok := p.byText[text]; ok {
		return known
	}
	made := compile(text)
	if p.bytes += made.size.bytes; p.bytes > mostBytes {
		clear(p.byText)
		p.bytes = made.size.bytes
	}
	p.byText[text] = made
	return made
}

// compile compiles a pattern, if its program is not too large: the program of 'x{1000}' has a thousand instructions.
func compile(text string) pattern {
	made := pattern{size: programSize{bytes: 256 + 2*len(text)}} // its entry in the cache
	if len(text) > mostText {
		made.err = fmt.Errorf("it has %d bytes, and may have %d", len(text), mostText)
		return made
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		made.err = err
		return made
	}
	instructions, runes := sizesOf(parsed)
	if instructions > mostInstructions {
		made.err = fmt.Errorf("its repetitions make it more than %d instructions", mostInstructions)
		return made
	}
	const ofInstruction, ofRune = 64, 4
	made.size = programSize{instructions, made.size.bytes + ofInstruction*instructions + ofRune*runes}
	made.expression, made.err = regexp.Compile(text)
	return made
}

// sizesOf returns an upper bound on the number of instructions that the expression is compiled to, which is not exact
// above mostInstructions, and the number of characters that its classes list. Copies of a class share the list.
func sizesOf(re *syntax.Regexp) (instructions, runes int) {
	instructions = 2
	if re.Op == syntax.OpLiteral {
		instructions = len(re.Rune)
	} else {
		runes = len(re.Rune)
	}
	for _, sub := range re.Sub {
		subInstructions, subRunes := sizesOf(sub)
		instructions, runes = instructions+1+subInstructions, runes+subRunes
	}
	if re.Op == syntax.OpRepeat {
		instructions *= max(re.Max, re.Min+1)
	}
	return min(instructions, 1<<20), runes
}
