package find

import (
	"bytes"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/musterhq/muster/internal/engine/place"
	"k8s.io/klog/v2"
)

// One job with Gt or Lt where taints are no numbers would fill the disk of the operator's node.
func TestTolerationsLogNothing(t *testing.T) {
	for _, operator := range []corev1.TolerationOperator{corev1.TolerationOpGt, corev1.TolerationOpLt} {
		out := logged(t)
		s := newScene(t).node("a1", tainted(corev1.TaintEffectNoSchedule))
		ask := gpus(1, 1, func(a *place.Ask) {
			for i := range 10 {
				a.Tolerations = append(a.Tolerations, corev1.Toleration{Key: "k", Operator: operator, Value: fmt.Sprint(i)})
			}
			a.Bounds = []place.Bound{{Kind: place.Even, Key: "rack", Counts: []string{"main"}, MaxSkew: 1, Untainted: true}}
		})
		s.find(place.Now, ask)
		if klog.Flush(); out.Len() > 0 {
			t.Errorf("%s logs %.200s", operator, out)
		}
	}
}

// logged returns what klog writes until the test ends.
func logged(t *testing.T) *bytes.Buffer {
	out := &bytes.Buffer{}
	klog.LogToStderr(false)
	klog.SetOutput(out)
	t.Cleanup(func() { klog.Flush(); klog.LogToStderr(true) })
	return out
}
