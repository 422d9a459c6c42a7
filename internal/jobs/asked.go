package jobs

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
)

// A Workload may ask for something else than its job: policies of the cluster's owner add tolerations to all of them, or have them
// cost more. Whether the job was changed since cannot be told from it then, and a Workload that is made anew for that is changed in
// the same way: the job would queue anew without end. So what the job asked for is noted beside it, by who may say that alone.

// askedVersion begins what is noted, and is another one wherever the same needs come to have another digest: what an earlier Muster noted of jobs
// that run cannot be compared with then, and they must not be stopped for that.
const askedVersion = "v1-"

// askedFor is a digest of what pods of the pod sets need.
func askedFor(podSets []kueue.PodSet) string {
	type asked struct {
		Name  kueue.PodSetReference
		Needs corev1.PodSpec
	}
	all := make([]asked, 0, len(podSets))
	for i := range podSets {
		all = append(all, asked{podSets[i].Name, needs(&podSets[i].Template.Spec)})
	}
	text, err := json.Marshal(all)
	if err != nil {
		panic("encoding what pods need: " + err.Error()) // plain data
	}
	sum := sha256.Sum256(text)
	return askedVersion + hex.EncodeToString(sum[:16])
}

// noteAsked has the Workload say what the job asks for by it.
func noteAsked(w *kueue.Workload, podSets []kueue.PodSet) {
	metav1.SetMetaDataAnnotation(&w.ObjectMeta, muster.AskedAnnotation, askedFor(podSets))
}

// IsFor reports whether the quota of an Admitted job is for pods that need what those of the pod sets do: it is what their Workload
// asks for, or what they needed when it was asked for, as far as that is known.
func (a Admission) IsFor(podSets []kueue.PodSet) bool {
	other := slices.ContainsFunc(podSets, func(asks kueue.PodSet) bool {
		granted := a.PodSets[string(asks.Name)]
		return !granted.isFor(&asks.Template)
	})
	return !other || a.Noted != "" && (a.Noted == askedFor(podSets) || !strings.HasPrefix(a.Noted, askedVersion))
}
