package listwatch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

var (
	errRefused = fmt.Errorf("asking: %w", &url.Error{Op: "Get", URL: "https://cluster", Err: syscall.ECONNREFUSED})
	gateway    = apierrors.NewGenericServerResponse(http.StatusBadGateway, "get",
		kueue.GroupVersion.WithResource("workloads").GroupResource(), "", "", 0, true)
)

// TestTheCacheFollowsSoonAfterAnOutage, however long that was.
func TestTheCacheFollowsSoonAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// What the informer's goroutine and the test share is atomic: one that wakes from sleep does not wait for the other.
		var down atomic.Bool
		var watches atomic.Int32
		var running atomic.Pointer[watch.FakeWatcher]
		informer := toolscache.NewSharedIndexInformer(untilReached(&toolscache.ListWatch{
			ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
				if down.Load() {
					return nil, errRefused
				}
				return &kueue.WorkloadList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, nil
			},
			WatchFuncWithContext: func(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
				switch {
				case down.Load():
					return nil, errRefused
				case options.SendInitialEvents != nil:
					return nil, apierrors.NewBadRequest("a list, please")
				}
				watches.Add(1)
				running.Store(watch.NewFake())
				return running.Load(), nil
			},
		}, "Workload"), &kueue.Workload{}, 0, toolscache.Indexers{})
		go informer.RunWithContext(t.Context())
		synctest.Wait()
		down.Store(true)
		running.Load().Stop()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		down.Store(false)
		before := watches.Load()
		time.Sleep(2 * longestPause)
		synctest.Wait()
		if started := watches.Load() - before; started != 1 {
			t.Errorf("%d watches were started within %s of the API server's return, want one", started, 2*longestPause)
		}
	})
}

func TestOnlyAnUnreachableServerIsAskedAgain(t *testing.T) {
	for name, test := range map[string]struct {
		err   error
		again bool
	}{
		"no connection":      {errRefused, true},
		"the proxy's answer": {gateway, true},
		"not the API server": {&url.Error{Op: "Get", URL: "https://cluster",
			Err: &tls.CertificateVerificationError{Err: errors.New("by another authority")}}, false},
		"the API server's": {apierrors.NewForbidden(kueue.GroupVersion.WithResource("workloads").GroupResource(),
			"", nil), false},
		"an object of no use":   {errors.New("decoding"), false},
		"an expired version":    {apierrors.NewResourceExpired("too old"), false},
		"it has too much to do": {apierrors.NewTooManyRequests("later", 1), false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				_, err := reach(t.Context(), "workloads", func() (struct{}, error) {
					if asked++; asked > 1 {
						return struct{}{}, nil
					}
					return struct{}{}, test.err
				})
				if again := asked == 2; again != test.again || (err == nil) != test.again {
					t.Errorf("asked %d times, error %v", asked, err)
				}
			})
		})
	}
}

func TestNobodyIsAskedAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := reach(ctx, "workloads", func() (struct{}, error) { return struct{}{}, errRefused }); !errors.Is(err,
			syscall.ECONNREFUSED) {
			t.Errorf("error %v, want the last one", err)
		}
	})
}
