package show

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/cmd/muster/view"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/plain"
)

// linesShown is how many holders of quota are listed, and how many different verdicts on pod sets; the rest are only
// counted.
const linesShown = 5

// timeFormat is the layout of points in time.
const timeFormat = "2006-01-02 15:04:05 UTC"

// Explanation writes an explanation as text.
func Explanation(out io.Writer, e *view.Explanation) error {
	var text strings.Builder
	first := headline(e)
	text.WriteString(plain.Cut(first, textMost) + "\n\n")
	if whole := plain.Text(first); whole != plain.Cut(first, textMost) {
		line(&text, "in full", whole)
	}
	asks(&text, e)
	queueAndChecks(&text, e)
	timeLines(&text, &e.Job)
	podsAndNodes(&text, e)
	switch {
	case e.WhyNot != nil:
		whyNot(&text, e)
	case e.Warning != nil, e.Job.State == view.Pending && e.Job.Workload == "":
		// The job waits until the problem of the warning is fixed, or until an operator sees it, whatever the quota is.
	default:
		quotaAndHolders(&text, e)
	}
	if len(e.Unseen) > 0 {
		line(&text, "unseen", fmt.Sprintf("you may not list all %s: what they would add is missing here",
			strings.Join(e.Unseen, ", ")))
	}
	if e.Assumed != "" {
		line(&text, "assumed", "the default configuration: "+e.Assumed)
	}
	if next := nextCommand(e); next != "" {
		line(&text, "next", next)
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// asks writes what the pod sets request, or the job as a whole if they are not known.
func asks(text *strings.Builder, e *view.Explanation) {
	for i, group := range alike(len(e.Asks), func(i int) (string, string) { return e.Asks[i].PodSet, ask(&e.Asks[i]) }) {
		line(text, first(i, "asks"), group.each()+": "+ask(&e.Asks[group.first]))
	}
	if len(e.Asks) == 0 {
		line(text, "asks", podCount(e.Job.PodsAsked)+inAll(view.Amounts(e.Job.Requests, true)))
	}
}

// queueAndChecks writes the queue of the job, for whom the queue is if it is not for this job, and the checks that are
// not ready.
func queueAndChecks(text *strings.Builder, e *view.Explanation) {
	line(text, "queue", placeInLine(e))
	if e.Accepts != nil {
		line(text, "", refusal(e))
	}
	if len(e.Covers) > 0 {
		line(text, "", "it has quota only for "+listed(e.Covers))
	}
	for i := range e.Checks {
		line(text, first(i, "checks"),
			join(fmt.Sprintf("%s is %s", e.Checks[i].Name, e.Checks[i].State), e.Checks[i].Message))
	}
}

// podsAndNodes writes the state of the pods, what keeps them from being ready, and the nodes that they wait for.
func podsAndNodes(text *strings.Builder, e *view.Explanation) {
	var podLines []string
	if !e.Job.State.HasOutcome() {
		podLines = append(podLines, fmt.Sprintf("%s ready or done", pods(&e.Job)))
	}
	for i := range e.PodProblems {
		problem := &e.PodProblems[i]
		podLines = append(podLines,
			fmt.Sprintf("%d like %s: %s", problem.Pods, problem.Example, join(problem.Reason, problem.Message)))
	}
	for i, podLine := range podLines {
		line(text, first(i, "pods"), podLine)
	}
	if e.Job.Preempted != nil {
		line(text, "preempted", e.Job.Preempted.String()+ranBefore(&e.Job))
	}
	if w := e.Warning; w != nil {
		line(text, "told", fmt.Sprintf("%s at %s: %s", w.Reason, w.ReportedAt.UTC().Format(timeFormat), w.Message))
	}
	if r := e.Replacing; r != nil {
		line(text, "lost", replacing(e, r))
	}
	if e.NewNodes {
		line(text, "nodes", "it waits for new nodes: it was admitted by quota alone, as no node of that time could ever hold its pods")
		if levels := unenforcedLevels(e.Asks); len(levels) > 0 {
			line(text, "", fmt.Sprintf("its pods have no places: nothing keeps them to one %s, as it requires",
				strings.Join(levels, " or ")))
		}
	}
}

// replacing says which places a running job lost, and for which ones it waits.
func replacing(e *view.Explanation, r *reason.Replacing) string {
	loss := fmt.Sprintf("%s on %s, the other pods go on", podCount(r.Pods), strings.Join(r.Lost, ", "))
	if len(r.Awaits) == 0 {
		return loss
	}
	return loss + "; other places are promised, still in use by " + names(e, r.Awaits)
}

// ranBefore says how long a job that waits had run before it was stopped, over all its attempts.
func ranBefore(job *view.Job) string {
	if job.RunSeconds == nil || *job.RunSeconds == 0 {
		return ""
	}
	return fmt.Sprintf("; it had run %s", view.Seconds(job.RunSeconds))
}

// quotaAndHolders writes the quota and its holders, for an explanation without an answer of the engine. A suspended job
// does not wait for holders, so they are omitted.
func quotaAndHolders(text *strings.Builder, e *view.Explanation) {
	for i := range e.Quotas {
		quota := &e.Quotas[i]
		if quota.Unlimited {
			line(text, first(i, "quota"),
				fmt.Sprintf("%s without limit in flavor %s", view.ShortName(quota.Resource), quota.Flavor))
			continue
		}
		free := quota.Free()
		line(text, first(i, "quota"), fmt.Sprintf("%s of %s free in flavor %s",
			view.Number(free), view.Amount(quota.Resource, quota.Nominal), quota.Flavor))
	}
	for i := range e.Holders {
		if e.Job.State == view.Suspended {
			break
		}
		if i == linesShown {
			line(text, "", fmt.Sprintf("and %d more", len(e.Holders)-i))
			break
		}
		holder := &e.Holders[i]
		line(text, first(i, "held by"), fmt.Sprintf("%s/%s  %s (priority %d)",
			holder.Namespace, holder.Job, view.Amounts(holder.Requests, false), holder.Priority))
	}
}

// headline returns the first line: the job, its state and why.
func headline(e *view.Explanation) string {
	job := &e.Job
	since := ""
	switch {
	case job.State == view.Pending:
		since = " for " + view.Seconds(job.WaitSeconds)
	case job.RunSeconds != nil:
		since = fmt.Sprintf(" (waited %s, ran %s)", view.Seconds(job.WaitSeconds), view.Seconds(job.RunSeconds))
	}
	text := fmt.Sprintf("%s is %s%s", job.FullTitle(), strings.ToLower(string(job.State)), since)
	why := job.Why()
	if e.WhyNot != nil && blame.MatchString(job.Message) &&
		slices.ContainsFunc(e.WhyNot.PodSets, func(ps reason.PodSet) bool { return len(ps.Flavors) > 0 }) {
		why = job.Reason // the verdict of each flavor follows below
	}
	if e.Warning != nil {
		why = whyBesides(job, e.Warning)
	}
	if why != "" {
		text += ": " + why
	}
	return text
}

// whyBesides returns why a job waits without the part that repeats the warning, which is printed separately. What
// remains is for instance the end of a backoff, or the queue that holds the job.
func whyBesides(job *view.Job, warning *view.Warning) string {
	why, _, _ := strings.Cut(job.Why(), ":")
	switch _, left, repeats := strings.Cut(job.Message, warning.Message); {
	case repeats:
		return why + left
	case job.Reason == "":
		return why
	}
	return job.Why()
}

// podCount formats a number of pods.
func podCount(n int32) string {
	if n == 1 {
		return "1 pod"
	}
	return fmt.Sprintf("%d pods", n)
}

// inAll formats the total requests of a job.
func inAll(amounts string) string {
	if amounts == "" {
		return " without requests"
	}
	return ", " + amounts + " in all"
}

// listed joins names with commas.
func listed[S ~string](names []S) string {
	var text []string
	for _, name := range names {
		text = append(text, string(name))
	}
	return strings.Join(text, ", ")
}

// ask returns what a pod set requests, without its name.
func ask(a *view.Ask) string {
	text := podCount(a.Pods) + " without requests"
	if amounts := view.Amounts(a.PerPod, true); amounts != "" {
		text = fmt.Sprintf("%s x %s", podCount(a.Pods), amounts)
	}
	if a.Fewest > 0 {
		text += fmt.Sprintf(", %s at least", podCount(a.Fewest))
	}
	if a.Together > 0 {
		text += fmt.Sprintf(", or none if %s of the job run", podCount(a.Together))
	}
	for i := range a.Near {
		text += ", " + nearness(&a.Near[i])
	}
	if a.Group != "" {
		text += ", together with all of group " + a.Group
	}
	if a.Given != nil {
		text += fmt.Sprintf(", admitted with %d", *a.Given)
	}
	if a.Left != nil {
		text += fmt.Sprintf(", holds quota for %d", *a.Left)
	}
	if len(a.Flavors) > 0 {
		text += ", in flavor " + strings.Join(slices.Compact(slices.Sorted(maps.Values(a.Flavors))), ", ")
	}
	return text
}

// unenforcedLevels returns the levels at which pods without places are required to share one domain, which nothing
// enforces for them. Slices with an exclusive domain are left out: there each pod follows the first pod of its Job.
func unenforcedLevels(asks []view.Ask) (levels []string) {
	for i := range asks {
		near := asks[i].Near
		for _, n := range near {
			alone := slices.Contains(near, view.Nearness{Of: view.Exclusive, Level: n.Level})
			if (n.Of == view.Required || n.Of == view.Slice && !alone) && !slices.Contains(levels, n.Level) {
				levels = append(levels, n.Level)
			}
		}
	}
	return levels
}

// nearness describes the domain that the pods must or should share.
func nearness(n *view.Nearness) string {
	switch n.Of {
	case view.Required:
		return "one " + n.Level + " required"
	case view.Preferred:
		return "one " + n.Level + " preferred"
	case view.Slice:
		return fmt.Sprintf("one %s for each %s", n.Level, podCount(n.Pods))
	default:
		return "one " + n.Level + " for each Job alone"
	}
}

// refusal says of which namespaces a queue accepts jobs, for a job of another one. A selector that refuses a namespace
// and selects nothing stands for none.
func refusal(e *view.Explanation) string {
	if len(e.Accepts.MatchLabels) == 0 && len(e.Accepts.MatchExpressions) == 0 {
		return fmt.Sprintf("ClusterQueue %s has no namespaceSelector, so it accepts jobs of no namespace",
			e.Line.ClusterQueue)
	}
	return fmt.Sprintf("ClusterQueue %s accepts only jobs of namespaces with the labels %s, and %s has others",
		e.Line.ClusterQueue, metav1.FormatLabelSelector(e.Accepts), e.Job.Namespace)
}

func placeInLine(e *view.Explanation) string {
	switch {
	case e.Job.Queue == "":
		return "none: it does not wait for quota"
	case e.Line == nil && slices.Contains(e.QueuesThere, e.Job.Queue):
		return fmt.Sprintf("%s: a ClusterQueue; nothing has waited for it in namespace %s yet", e.Job.Queue, e.Job.Namespace)
	case e.Line == nil:
		text := fmt.Sprintf("%s: no LocalQueue of that name leads to a ClusterQueue in namespace %s",
			e.Job.Queue, e.Job.Namespace)
		if len(e.QueuesThere) > 0 {
			text += "; there are " + listed(e.QueuesThere)
		}
		return text
	case e.Line.Position > 0:
		first, since := "", ""
		if e.WhyNot != nil {
			since = ", since " + e.WhyNot.Since.UTC().Format(timeFormat)
		}
		if e.WhyNot != nil && e.WhyNot.ByUsage {
			first = "LocalQueues that have used less come first, then "
		}
		return fmt.Sprintf("%s of ClusterQueue %s (position %d of %d, %spriority %d%s)",
			e.Job.Queue, e.Line.ClusterQueue, e.Line.Position, e.Line.Length, first, e.Job.Priority, since)
	}
	return fmt.Sprintf("%s of ClusterQueue %s (priority %d)", e.Job.Queue, e.Line.ClusterQueue, e.Job.Priority)
}

// resume returns the command that removes the stopPolicy, or the annotation, that holds the job.
func resume(job *view.Job, line *view.Line) string {
	const patch = `--type merge -p '{"spec": {"stopPolicy": "None"}}'`
	if name, ok := strings.CutPrefix(job.Message, "ClusterQueue "); ok {
		name, _, _ = strings.Cut(name, " ")
		if line != nil && line.ClusterQueue == name && line.Closed {
			return fmt.Sprintf("muster kubectl annotate clusterqueue %s %s-", name, muster.ClosedAnnotation)
		}
		return fmt.Sprintf("muster kubectl patch clusterqueue %s %s", name, patch)
	}
	return fmt.Sprintf("muster kubectl patch localqueue %s -n %s %s", job.Queue, job.Namespace, patch)
}

// line writes one line, whatever the value holds.
func line(text *strings.Builder, label, value string) {
	fmt.Fprintf(text, "  %-9s %s\n", label, plain.Text(value))
}

// first returns the label for the first of several lines, and "" for the others.
func first(i int, label string) string {
	if i == 0 {
		return label
	}
	return ""
}
