package rendezvous

import (
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// errReplaced is returned to a request whose pod has sent a newer one.
var errReplaced = errors.New("a newer request of the pod has replaced this one")

// errFull is returned to a request that is one too many.
var errFull = errors.New("the operator serves as many agents as the limit on its memory allows")

// holds are the requests that are held, at most one for each pod: an agent sends one at a time, and anyone who may
// create a pod can send requests in its name.
type holds struct {
	mu     sync.Mutex
	byPod  map[types.UID]*hold
	most   int
	serial uint64
	// awaiting holds requests that cannot be answered before a Job or JobSet has been observed, by its UID.
	awaiting map[types.UID]map[*hold]struct{}
}

// hold is a held request. It is notified of events of its pod, and of the object that it awaits.
type hold struct {
	broadcast
	pod types.UID
	// serial increases from request to request.
	serial uint64
	// replaced is closed when a newer request of the pod arrives.
	replaced chan struct{}
	awaits   types.UID
}

func (h *hold) isReplaced() bool {
	select {
	case <-h.replaced:
		return true
	default:
		return false
	}
}

func newHolds(most int) holds {
	return holds{byPod: map[types.UID]*hold{}, most: most, awaiting: map[types.UID]map[*hold]struct{}{}}
}

// begin holds a request of the pod instead of an earlier one. The caller must end it.
func (h *holds) begin(pod types.UID) (*hold, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if earlier := h.byPod[pod]; earlier != nil {
		close(earlier.replaced)
	} else if len(h.byPod) >= h.most {
		return nil, errFull
	}
	h.serial++
	request := &hold{pod: pod, serial: h.serial, replaced: make(chan struct{})}
	h.byPod[pod] = request
	return request, nil
}

// end ends the hold of a request.
func (h *holds) end(request *hold) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.byPod[request.pod] == request {
		delete(h.byPod, request.pod)
	}
	h.stopAwaiting(request)
}

// await makes events of the Job or JobSet notify the request, instead of events of another object. It returns false if
// they already did; otherwise the caller must look again, as the object may just have been observed.
func (h *holds) await(request *hold, object types.UID) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if request.awaits == object {
		return false
	}
	h.stopAwaiting(request)
	if h.awaiting[object] == nil {
		h.awaiting[object] = map[*hold]struct{}{}
	}
	h.awaiting[object][request], request.awaits = struct{}{}, object
	return true
}

// stopAwaiting requires h.mu.
func (h *holds) stopAwaiting(request *hold) {
	delete(h.awaiting[request.awaits], request)
	if len(h.awaiting[request.awaits]) == 0 {
		delete(h.awaiting, request.awaits)
	}
}

// notify notifies the request of the pod with this UID, or the requests that await the Job or JobSet with this UID.
func (h *holds) notify(object types.UID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if request := h.byPod[object]; request != nil {
		request.notify()
	}
	for request := range h.awaiting[object] {
		request.notify()
	}
}
