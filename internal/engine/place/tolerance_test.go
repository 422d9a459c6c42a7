package place

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
)

// Whatever tolerations and taints are made of, the answer is that of the Kubernetes helper.
func TestToleranceAgreesWithKubernetes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	value := func() string {
		return pick("", "v", "1", "2", "-3", "007", "+1", "9223372036854775807", "-9223372036854775808",
			"9223372036854775808")
	}
	effect := func() corev1.TaintEffect { return corev1.TaintEffect(pick("", "NoSchedule", "NoExecute")) }
	tolerated := 0
	for range 100_000 {
		taint := corev1.Taint{Key: pick("a", "b"), Value: value(), Effect: effect()}
		var lists [2][]corev1.Toleration
		for i := range r.IntN(5) {
			lists[i%2] = append(lists[i%2], corev1.Toleration{Key: pick("", "a", "b"), Value: value(), Effect: effect(),
				Operator: corev1.TolerationOperator(pick("", "Equal", "Exists", "Gt", "Lt", "no"))})
		}
		tolerance := ToleranceOf(lists[0], lists[1])
		want := corev1helpers.TolerationsTolerateTaint(logr.Discard(), append(lists[0], lists[1]...), &taint, true)
		if got := tolerance.Tolerates(&taint); got != want {
			t.Fatalf("taint %+v is tolerated: %v, want %v, by %+v", taint, got, want, lists)
		}
		if want {
			tolerated++
		}
	}
	if tolerated < 10_000 || tolerated > 90_000 {
		t.Errorf("%d of 100,000 taints are tolerated: the comparison says little", tolerated)
	}
}

// A check of a taint costs the same whatever the number of tolerations is.
func TestAllTolerationsOfAKeyAreLookedUpAtOnce(t *testing.T) {
	taint := corev1.Taint{Key: "k", Value: "5", Effect: corev1.TaintEffectNoSchedule}
	for _, operator := range []corev1.TolerationOperator{corev1.TolerationOpEqual, corev1.TolerationOpGt,
		corev1.TolerationOpLt, corev1.TolerationOpExists} {
		var list []corev1.Toleration
		for i := range 10_000 {
			list = append(list, corev1.Toleration{Key: "k", Operator: operator, Value: fmt.Sprint(i - 5_000),
				Effect: corev1.TaintEffectNoSchedule})
		}
		tolerance := ToleranceOf(list)
		if !tolerance.Tolerates(&taint) {
			t.Errorf("%s: the taint is not tolerated", operator)
		}
		if n := len(tolerance.between) + len(tolerance.exists); operator != corev1.TolerationOpEqual && n != 1 {
			t.Errorf("%s: 10,000 tolerations of one kind are kept as %d", operator, n)
		}
	}
}
