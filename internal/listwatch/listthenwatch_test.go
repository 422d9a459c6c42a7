package listwatch

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// openingOf responds with the list and the changes that follow, or with an error.
func openingOf(list string, changes watch.Interface, failure error) listThenWatch {
	return listThenWatch{
		lists: workloadLists, newObject: newWorkload,
		list: func(context.Context, metav1.ListOptions) (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader(list)), nil
		},
		watch: func(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
			if failure == nil && (options.ResourceVersion != "7" || options.SendInitialEvents != nil ||
				options.ResourceVersionMatch != "") {
				return nil, errors.New("it is to watch from the list on")
			}
			return changes, failure
		},
	}
}

// beginning requests a watch with initial events, as informers do.
var beginning = metav1.ListOptions{SendInitialEvents: new(true),
	ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true}

const twoAndSeven = `{"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}],"metadata":{"resourceVersion":"7"}}`

func TestAWatchStartsWithAListAndContinues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		changes := watch.NewFake()
		w, err := openingOf(twoAndSeven, changes, nil).open(t.Context(), beginning)
		if err != nil {
			t.Fatal(err)
		}
		go changes.Modify(&kueue.Workload{ObjectMeta: metav1.ObjectMeta{Name: "b"}})
		for i, want := range []watch.Event{{Type: watch.Added}, {Type: watch.Added}, {Type: watch.Bookmark},
			{Type: watch.Modified}} {
			got := <-w.ResultChan()
			if got.Type != want.Type {
				t.Fatalf("type of event %d = %s, want %s", i, got.Type, want.Type)
			}
			marked := got.Object.(*kueue.Workload)
			if ends := marked.Annotations[metav1.InitialEventsAnnotationKey] == "true" &&
				marked.ResourceVersion == "7"; ends != (want.Type == watch.Bookmark) {
				t.Errorf("event %d marks the end of the initial events: %t", i, ends)
			}
		}
		w.Stop()
		if _, open := <-w.ResultChan(); open {
			t.Error("the watch sends events after it was stopped")
		}
		synctest.Wait() // fails if a goroutine of the watch still runs
		if !changes.IsStopped() {
			t.Error("the underlying watch was not stopped")
		}
	})
}

func TestAnUnreadWatchEndsWhenStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		items := strings.Repeat(`{},`, 2*maxAhead)
		w, err := openingOf(`{"items":[`+items+`{}],"metadata":{"resourceVersion":"7"}}`, watch.NewFake(),
			nil).open(t.Context(), beginning)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		w.Stop()
	})
}

func TestErrorsOfAWatchAreReported(t *testing.T) {
	gone := apierrors.NewResourceExpired("too old")
	for what, test := range map[string]struct {
		opening listThenWatch
		is      func(error) bool
	}{
		"a truncated list": {openingOf(twoAndSeven[:40], nil, nil), apierrors.IsInternalError},
		"a list with a continue token": {openingOf(strings.Replace(twoAndSeven, `"7"`, `"7","continue":"x"`, 1), nil, nil),
			apierrors.IsInternalError},
		"a list without a version": {openingOf(`{"items":[]}`, nil, nil), apierrors.IsInternalError},
		"an expired version":       {openingOf(twoAndSeven, nil, gone), apierrors.IsResourceExpired},
		"a watch that is refused":  {openingOf(twoAndSeven, nil, errors.New("no")), apierrors.IsInternalError},
	} {
		w, err := test.opening.open(t.Context(), beginning)
		if err != nil {
			t.Fatal(err)
		}
		var last watch.Event
		for event := range w.ResultChan() {
			if event.Type == watch.Bookmark {
				t.Errorf("%s: the end of the initial events is marked", what)
			}
			last = event
		}
		if last.Type != watch.Error || !test.is(apierrors.FromObject(last.Object)) {
			t.Errorf("%s: the last event is %+v, want the error", what, last)
		}
	}
	refused := openingOf("", nil, nil)
	refused.list = func(context.Context, metav1.ListOptions) (io.ReadCloser, error) { return nil, gone }
	if _, err := refused.open(t.Context(), beginning); !apierrors.IsResourceExpired(err) {
		t.Errorf("a list that is refused: got error %v, want expired", err)
	}
}

// TestTheListRequestFollowsTheWatchOptions: the list is either not older than a version, or the most recent.
func TestTheListRequestFollowsTheWatchOptions(t *testing.T) {
	for version, match := range map[string]metav1.ResourceVersionMatch{"": "",
		"5": metav1.ResourceVersionMatchNotOlderThan} {
		o := openingOf(twoAndSeven, watch.NewEmptyWatch(), nil)
		list := o.list
		o.list = func(ctx context.Context, options metav1.ListOptions) (io.ReadCloser, error) {
			if options.ResourceVersion != version || options.ResourceVersionMatch != match || options.SendInitialEvents != nil ||
				options.TimeoutSeconds != nil {
				t.Errorf("version %q: list options = %+v", version, options)
			}
			return list(ctx, options)
		}
		options := beginning
		options.ResourceVersion, options.TimeoutSeconds = version, new(int64(300))
		w, err := o.open(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		for range w.ResultChan() {
		}
	}
}
