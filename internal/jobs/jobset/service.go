package jobset

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/internal/jobs"
)

// createService creates the headless Service that gives the pods their host names,
// if it is missing. It is labelled, so that the documented selector finds it.
func (a *attempt) createService() {
	if !dnsHostnames(a.js) || len(jobs.ChildrenOf[*corev1.Service](a.seen.Children)) > 0 {
		return
	}
	publishNotReady := a.js.Spec.Network == nil || ptr.Deref(a.js.Spec.Network.PublishNotReadyAddresses, true)
	own := map[string]string{jobset.JobSetNameKey: a.js.Name}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Name:            subdomain(a.js),
			Namespace:       a.js.Namespace,
			Labels:          own,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(a.js, kind)},
		},
		Spec: corev1.ServiceSpec{
			ClusterIP:                corev1.ClusterIPNone,
			Selector:                 own,
			PublishNotReadyAddresses: publishNotReady,
		},
	}
	a.plan.Writes = append(a.plan.Writes, jobs.Create(service).OrWarn(jobset.HeadlessServiceCreationFailedReason))
}
