package jobset

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/internal/jobs"
)

// verdict is what the failure policy says about a failed Job.
type verdict struct {
	// action is what to do, "" to fail because there is no policy.
	action jobset.FailurePolicyAction
	// rule is the name of the rule that matched, "" if none did.
	rule string
	job  *batchv1.Job
}

// judge returns the verdicts about the failed Jobs in the order in which they count: by the first rule that matches the
// Job, the order of rules being that of the policy, and then by the time of the failure and by name. Jobs that no rule
// matches come last; for them, all Jobs are recreated. The error says which pattern of the policy matched nothing
// because it cannot be used.
//
// A verdict ends the JobSet or counts a restart, and its status says so before anything else is done: from then on the
// Job belongs to an earlier attempt, and is not judged again, by this operator or another.
func judge(policy *jobset.FailurePolicy, failed []*batchv1.Job) (out []verdict, unusable error) {
	left := slices.Clone(failed)
	slices.SortFunc(left, func(a, b *batchv1.Job) int {
		return cmp.Or(failedAt(a).Compare(failedAt(b)), cmp.Compare(a.Name, b.Name))
	})
	otherwise := verdict{}
	if policy != nil {
		var patterns [][]*regexp.Regexp
		patterns, unusable = usablePatterns(policy)
		for i := range policy.Rules {
			rule := &policy.Rules[i]
			name := ruleName(rule, i)
			left = slices.DeleteFunc(left, func(job *batchv1.Job) bool {
				does := matches(rule, patterns[i], job)
				if does {
					out = append(out, verdict{action: rule.Action, rule: name, job: job})
				}
				return does
			})
		}
		otherwise.action = jobset.RestartJobSet
	}
	for _, job := range left {
		otherwise.job = job
		out = append(out, otherwise)
	}
	return out, unusable
}

func failedAt(job *batchv1.Job) time.Time {
	return jobs.TrueCondition(job, batchv1.JobFailed).LastTransitionTime.Time
}

// matches reports whether the rule, with these patterns, matches a failed Job: by its replicated job and by the reason
// and message of its failure. Empty lists match everything, but a list of patterns that cannot be used matches nothing.
func matches(rule *jobset.FailurePolicyRule, patterns []*regexp.Regexp, job *batchv1.Job) bool {
	why := jobs.TrueCondition(job, batchv1.JobFailed)
	return anyOr(rule.TargetReplicatedJobs, job.Labels[jobset.ReplicatedJobNameKey]) &&
		anyOr(rule.OnJobFailureReasons, why.Reason) &&
		(len(rule.OnJobFailureMessagePatterns) == 0 ||
			slices.ContainsFunc(patterns, func(p *regexp.Regexp) bool { return p.MatchString(why.Message) }))
}

// anyOr reports whether the list is empty or contains the value.
func anyOr(list []string, value string) bool { return len(list) == 0 || slices.Contains(list, value) }

// ruleName returns the name of the rule, or the default name for a rule at this index.
func ruleName(rule *jobset.FailurePolicyRule, index int) string {
	return cmp.Or(rule.Name, fmt.Sprintf("failurePolicyRule%d", index))
}

// countsTowardsMax reports whether the action counts against maxRestarts.
func countsTowardsMax(action jobset.FailurePolicyAction) bool {
	return action == jobset.RestartJobSet || action == jobset.RestartJob
}

// restartsSingleJob reports whether the action recreates only the Job that failed.
func restartsSingleJob(action jobset.FailurePolicyAction) bool {
	return action == jobset.RestartJob || action == jobset.RestartJobAndIgnoreMaxRestarts
}

// restartsSpent returns how much of maxRestarts has been used up, by restarts of all Jobs and of single ones.
func restartsSpent(status *jobset.JobSetStatus) int32 {
	sum := int64(status.RestartsCountTowardsMax)
	for _, entry := range status.ReplicatedJobsStatus {
		for _, count := range entry.JobRestartsCountTowardsMax {
			sum += int64(count)
		}
	}
	return int32(min(sum, 1<<31-1))
}

// successMayBeUndone reports whether a later failure may make succeeded Jobs run again. Once it returns false, it stays
// false: rules are immutable, and restarts that were used up stay so.
func successMayBeUndone(js *jobset.JobSet) bool {
	policy := js.Spec.FailurePolicy
	if policy == nil {
		return false
	}
	left := restartsSpent(&js.Status) < policy.MaxRestarts
	for _, rule := range policy.Rules {
		if rule.Action == jobset.RestartJobSetAndIgnoreMaxRestarts || rule.Action == jobset.RestartJobSet && left {
			return true
		}
		if len(rule.OnJobFailureReasons)+len(rule.OnJobFailureMessagePatterns)+len(rule.TargetReplicatedJobs) == 0 {
			return false // it matches every failure: no rule after it is reached
		}
	}
	return left
}

// Bounds of the patterns of failure rules. The API accepts nothing near them: what exceeds them was stored before the
// API had its own bounds. Time to match grows with the number of instructions, for each byte of a message.
const (
	// mostText is the longest pattern, in bytes: the API once accepted 1,024 characters.
	mostText = 4096
	// mostInstructions bounds the instructions of one pattern, mostOfPolicy the instructions of all patterns of a failure
	// policy.
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

// usablePatterns returns the compiled patterns of each rule, and why the first pattern left out cannot be used. Once
// the policy exceeds its bounds, no more of its patterns are compiled.
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

// patterns caches compiled patterns by their text: the Jobs of a JobSet fail one by one, and many JobSets have the same
// patterns. They are compiled one at a time, whoever asks.
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

func inPlace(js *jobset.JobSet) bool {
	policy := js.Spec.FailurePolicy
	return policy != nil && policy.RestartStrategy == jobset.InPlaceRestart
}
