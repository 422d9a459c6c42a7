package show

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/musterhq/muster/cmd/muster/view"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/place/find"
	"github.com/musterhq/muster/internal/engine/reason"
)

// whyNot writes the engine's explanation of a job that waits: the verdict of each flavor, who holds what is short, and
// what would let the job be admitted.
func whyNot(text *strings.Builder, e *view.Explanation) {
	x := e.WhyNot
	switch x.Code {
	case reason.ExceedsNodes:
		line(text, "never", "with these nodes: they could not hold its pods even if nothing else ran on them")
	case reason.ExceedsMaxQuota:
		line(text, "never", "with this quota: its queue could not give so much even if nothing else used it")
	}
	switch {
	case x.Behind != nil && x.BehindCode != reason.None:
		line(text, "behind", fmt.Sprintf("%s, the head of the queue, which is StrictFIFO: no job may overtake it, and it never starts with %s (%s)",
			e.Title(*x.Behind), neverWith(x.BehindCode), x.BehindCode))
	case x.Behind != nil:
		line(text, "behind", e.Title(*x.Behind)+", the head of the queue, which is StrictFIFO: no job may overtake it")
	}
	if len(x.Unready) > 0 {
		line(text, "awaits", names(e, x.Unready)+", whose pods are not ready")
	}
	start(text, e)
	verdicts(text, e)
	together(text, x.Together)
	for i := range x.Holders {
		if i == linesShown {
			line(text, "", fmt.Sprintf("and %d more", len(x.Holders)-i))
			break
		}
		line(text, first(i, "held by"), holder(e, &x.Holders[i]))
	}
	for i, way := range remedies(e) {
		line(text, first(i, "would fit"), way)
	}
	if before := x.Position - 1; before > 0 && len(x.WouldPreempt) == 0 && x.State == reason.Waiting {
		line(text, "before it", fmt.Sprintf("%s of the queue, which may take what becomes free first", jobCount(before)))
	}
}

// start writes when the job is planned to start, and whose planned start it would delay if it started now.
func start(text *strings.Builder, e *view.Explanation) {
	x := e.WhyNot
	if d := x.Delays; d != nil {
		word := "planned"
		if d.Promised {
			word = "promised"
		}
		line(text, "behind", fmt.Sprintf("%s: there is capacity now, but this job would delay its start, %s for %s",
			e.Title(d.Name), word, d.At.UTC().Format(timeFormat)))
	}
	s := x.Start
	if s == nil {
		return
	}
	at, after := s.At.UTC().Format(timeFormat), ""
	if len(s.After) > 0 {
		after = ", once " + names(e, s.After) + " ended"
	}
	switch {
	case s.Promised:
		line(text, "starts", "by "+at+", which is promised"+after)
		line(text, "", "only jobs whose limit ends before that, or that fit beside it then, go first")
	case s.Reserved:
		line(text, "starts", "about "+at+after)
		line(text, "", "only jobs that are expected to end before that, or that fit beside it then, go first")
	default:
		line(text, "starts", "not before about "+at+after+", and later if other jobs come first")
	}
}

// jobCount formats a number of jobs.
func jobCount(n int) string {
	if n == 1 {
		return "1 job"
	}
	return fmt.Sprintf("%d jobs", n)
}

// neverWith names what a job with the code exceeds.
func neverWith(code reason.Code) string {
	if code == reason.ExceedsNodes {
		return "these nodes"
	}
	return "this quota"
}

// verdicts writes what the flavors say of each pod set.
func verdicts(text *strings.Builder, e *view.Explanation) {
	list := e.WhyNot.PodSets
	groups := alike(len(list), func(i int) (string, string) {
		var phrase strings.Builder
		verdict(&phrase, e, &list[i], "", "")
		return list[i].Name, phrase.String()
	})
	width := widest(groups[:min(len(groups), linesShown)])
	for i, group := range groups {
		if i == linesShown {
			line(text, "", fmt.Sprintf("and others for %d more pod sets", namesIn(groups[i:])))
			break
		}
		prefix := ""
		if len(list) > 1 {
			prefix = fmt.Sprintf("%-*s ", width+1, abridged(group.names)+":")
		}
		verdict(text, e, &list[group.first], first(i, "flavor"), prefix)
	}
}

// verdict writes what each flavor says of one pod set, the label before the first.
func verdict(text *strings.Builder, e *view.Explanation, podSet *reason.PodSet, label, prefix string) {
	for i := range podSet.Flavors {
		flavor := &podSet.Flavors[i]
		phrase := fmt.Sprintf("%s%-8s  %s", prefix, flavor.Flavor, flavorSays(e, flavor))
		if flavor.Nearest && flavor.Fit != reason.Refused && len(podSet.Flavors) > 1 {
			phrase += "  <- nearest"
		}
		line(text, label, phrase)
		label = ""
		onNodes(text, flavor)
	}
}

// flavorSays returns the verdict of one flavor with its amounts.
func flavorSays(e *view.Explanation, flavor *reason.FlavorVerdict) string {
	switch flavor.Fit {
	case reason.Refused:
		if flavor.Message == "flavor "+flavor.Flavor+" not found" {
			return "there is no ResourceFlavor of this name"
		}
		return flavor.Message
	case reason.TooLarge:
		return "more than it could ever give: " + tooLarge(flavor.Amounts)
	case reason.Fits:
		if e.Unlimited {
			return fitsOrHas(e, flavor) + ": its quota is without limit"
		}
	}
	var numbers []string
	for i := range flavor.Amounts {
		if amount := &flavor.Amounts[i]; flavor.Fit == reason.Fits || !amount.Missing.IsZero() {
			numbers = append(numbers, amountSays(amount))
		}
	}
	phrase := strings.Join(numbers, ", ")
	if flavor.Borrows {
		phrase += ", borrowed quota included"
	}
	switch flavor.Fit {
	case reason.Fits:
		return fitsOrHas(e, flavor) + ": " + phrase
	case reason.FitsAfterEvicted:
		return phrase + "; fits once the evicted jobs have terminated"
	case reason.FitsByPreemption:
		return fmt.Sprintf("%s; fits by preemption of %s", phrase, names(e, flavor.WouldPreempt))
	}
	return phrase
}

// fitsOrHas begins the verdict of a flavor with enough quota: it says that the job fits only if nothing else keeps it
// from being admitted.
func fitsOrHas(e *view.Explanation, flavor *reason.FlavorVerdict) string {
	x := e.WhyNot
	if x != nil && (x.Behind != nil || x.Together != nil || x.Code.Never()) || flavor.Nodes != nil && !flavor.Nodes.Fits {
		return "enough quota"
	}
	return "fits"
}

// tooLarge lists the resources of which the job asks for more than the flavor's total capacity, whoever holds it now.
func tooLarge(amounts []reason.Amount) string {
	var numbers []string
	for i := range amounts {
		a := &amounts[i]
		asked := a.Asked.DeepCopy()
		asked.Add(a.Earlier)
		if a.Capacity == nil || asked.Cmp(*a.Capacity) <= 0 {
			continue
		}
		numbers = append(numbers, fmt.Sprintf("%s %s asked, %s at most", view.Number(asked),
			view.ShortName(corev1.ResourceName(a.Resource)), view.Number(*a.Capacity)))
	}
	return strings.Join(numbers, ", ")
}

// amountSays formats one amount. An unlimited capacity and a missing amount of zero are left out. Only an amount that
// is short needs an exact number: the exact memory of a node is a long number.
func amountSays(a *reason.Amount) string {
	number := view.Number
	if a.Missing.IsZero() {
		number = view.Rounded
	}
	free := a.Free
	if free.Sign() < 0 {
		free.Set(0) // the quota was reduced below its usage
	}
	phrase := number(free)
	if a.Capacity != nil {
		phrase += " of " + number(*a.Capacity)
	}
	phrase = fmt.Sprintf("%s %s free", phrase, view.ShortName(corev1.ResourceName(a.Resource)))
	if !a.Missing.IsZero() {
		phrase += fmt.Sprintf(", %s more needed", view.Number(a.Missing))
	}
	return phrase
}

func holder(e *view.Explanation, h *reason.Holder) string {
	notes := []string{fmt.Sprintf("priority %d", h.Priority)}
	if h.ClusterQueue != e.WhyNot.ClusterQueue {
		notes = append(notes, "of ClusterQueue "+h.ClusterQueue)
	}
	switch {
	case h.Leaving:
		notes = append(notes, "is terminating")
	case h.Promised:
		notes = append(notes, "waits for it: the quota is reserved for it")
	case h.Preemptable:
		notes = append(notes, "may be preempted")
	default:
		notes = append(notes, "cannot be preempted: "+h.NotPreemptable)
	}
	return fmt.Sprintf("%s  %s (%s)", e.Title(h.Name), view.Amounts(h.Holds, true), strings.Join(notes, ", "))
}

// remedies lists what would let the job be admitted.
func remedies(e *view.Explanation) []string {
	x := e.WhyNot
	var ways []string
	if len(x.Awaits) > 0 && x.Code == reason.WaitingForPreemptedWorkloads {
		ways = append(ways, "after the end of "+names(e, x.Awaits)+", which is being evicted")
	}
	if len(x.WouldPreempt) > 0 {
		var victims []reason.Name
		for _, v := range x.WouldPreempt {
			victims = append(victims, v.Name)
		}
		ways = append(ways, "by preemption of "+names(e, victims))
	}
	if len(x.WouldShrink) > 0 {
		var givers []reason.Name
		for _, s := range x.WouldShrink {
			givers = append(givers, s.Name)
		}
		ways = append(ways, "with pods of "+names(e, givers)+", which would go on with fewer")
	}
	if len(x.WouldFitAfter) > 0 && x.Position <= 1 {
		ways = append(ways, "after the end of "+names(e, x.WouldFitAfter))
	}
	return ways
}

// names joins the titles of jobs, truncated so that they fit on a line.
func names(e *view.Explanation, list []reason.Name) string {
	var titles []string
	for _, name := range list {
		titles = append(titles, e.Title(name))
	}
	return abridged(titles)
}

// onNodes writes why the pods do not fit on the nodes of a flavor; nothing if they do. No change for the nodes' sake
// lets in a job for which the quota is too small.
func onNodes(text *strings.Builder, flavor *reason.FlavorVerdict) {
	nodes := flavor.Nodes
	if nodes == nil || nodes.Fits {
		return
	}
	for i := range nodes.PodSets {
		phrase := &nodes.PodSets[i]
		line(text, "  nodes", phrase.Message())
		if best := phrase.Best; best != nil && best.Level != "" {
			line(text, "  best", bestOf(best, phrase.Count))
		}
	}
	if nodes.Relaxation != "" && flavor.Fit != reason.TooLarge {
		line(text, "  change", "it would fit: "+nodes.Relaxation)
	}
}

// together writes the diagnosis of pod sets that each fit on the nodes alone but not together.
func together(text *strings.Builder, nodes *find.Diagnosis) {
	if nodes == nil {
		return
	}
	groups := alike(len(nodes.PodSets),
		func(i int) (string, string) { return nodes.PodSets[i].PodSet, nodes.PodSets[i].Message() })
	for i, group := range groups {
		line(text, first(i, "together"), fmt.Sprintf("%s: %s", abridged(group.names), nodes.PodSets[group.first].Message()))
	}
	if nodes.Relaxation != "" {
		line(text, "  change", "it would fit: "+nodes.Relaxation)
	}
}

// bestOf reports how many of the pods fit in the domain that holds the most of them, and which resource is short there.
func bestOf(best *find.Domain, pods int32) string {
	phrase := fmt.Sprintf("%s %s: %d of %d pods fit", best.Level, strings.Join(best.Values, "/"), best.Fits, pods)
	if best.Resource == "" || best.Lacks <= 0 {
		return phrase
	}
	is := "is"
	if best.Resource == place.Pods {
		is = "are"
	}
	return fmt.Sprintf("%s, %s %s short for %d more", phrase,
		view.ShortName(corev1.ResourceName(best.Resource)), is, best.Lacks)
}
