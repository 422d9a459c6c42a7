package jobstest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
)

// CheckedPlan calls plan and checks that it is a pure function: it modifies none of its arguments, and neither another
// call nor another order of the children changes the result.
func CheckedPlan[T client.Object](t rapid.TB, plan func(jobs.Seen[T]) jobs.Plan, seen jobs.Seen[T]) jobs.Plan {
	t.Helper()
	job, children := copied(seen.Job), make([]client.Object, len(seen.Children))
	for i, child := range seen.Children {
		children[i] = copied(child)
	}
	got := plan(seen)
	if diff := cmp.Diff(job, seen.Job); diff != "" {
		t.Fatalf("the job that was given was changed:\n%s", diff)
	}
	if diff := cmp.Diff(children, seen.Children, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("the children that were given were changed:\n%s", diff)
	}
	seen.Children = slices.Clone(seen.Children)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(seen.Children), func(i, j int) {
		seen.Children[i], seen.Children[j] = seen.Children[j], seen.Children[i]
	})
	if diff := cmp.Diff(inOrder(got), inOrder(plan(seen)), comparePlans); diff != "" {
		t.Fatalf("another order of the children changes the plan:\n%s", diff)
	}
	return got
}

func copied[T client.Object](o T) T { return o.DeepCopyObject().(T) }

// inOrder returns the plan with its writes sorted, since they are done concurrently.
func inOrder(p jobs.Plan) jobs.Plan {
	p.Writes = slices.SortedFunc(slices.Values(p.Writes),
		func(a, b write.Write) int { return strings.Compare(Text(a), Text(b)) })
	return p
}

// comparePlans compares all of two plans; of functions, only whether they are nil.
var comparePlans = cmp.Options{
	cmp.AllowUnexported(write.Write{}), cmpopts.IgnoreUnexported(jobs.Plan{}), cmpopts.EquateEmpty(),
	cmp.Comparer(func(a, b func(client.Object) error) bool { return (a == nil) == (b == nil) }),
	cmp.Comparer(func(a, b func(client.Object)) bool { return (a == nil) == (b == nil) }),
	cmp.Comparer(func(a, b func(error) (client.Object, write.Event)) bool { return (a == nil) == (b == nil) }),
}

// Text returns what a write does, as "verb Kind name".
func Text(w write.Write) string {
	kind := fmt.Sprintf("%T", w.Object())
	return fmt.Sprintf("%s %s %s", w.Verb(), kind[strings.LastIndex(kind, ".")+1:], w.Object().GetName())
}

// Writes returns what a plan writes besides the status, as of Text, in order.
func Writes(p jobs.Plan) []string {
	var out []string
	for _, w := range slices.Concat(p.First, p.Writes) {
		out = append(out, Text(w))
	}
	return out
}

// Equal reports a difference between want and got. Nil and empty are the same.
func Equal[V any](t rapid.TB, what string, want, got V) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
