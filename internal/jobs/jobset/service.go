package jobset

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
)

// createServices creates missing headless Services: the one of the subdomain, which gives the pods their host names,
// and, if requested, one for each replicated job.
func (a *planner) createServices() {
	if dnsHostnames(a.js) {
		a.ensureSubdomainService()
	}
	if a.js.Annotations[muster.ServicePerReplicatedJobAnnotation] != "true" {
		return
	}
	there := map[string]bool{}
	for _, service := range jobs.ChildrenOf[*corev1.Service](a.seen.Children) {
		there[service.Name] = true
	}
	for i := range a.js.Spec.ReplicatedJobs {
		rj := &a.js.Spec.ReplicatedJobs[i]
		name := a.js.Name + "-" + rj.Name
		if there[name] || dnsHostnames(a.js) && name == subdomain(a.js) {
			continue
		}
		a.createService(name, map[string]string{jobset.JobSetNameKey: a.js.Name, jobset.ReplicatedJobNameKey: rj.Name})
	}
}

// createService creates a headless Service. Its label makes it match the documented selector.
func (a *planner) createService(name string, selector map[string]string) {
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Name:            name,
			Namespace:       a.js.Namespace,
			Labels:          map[string]string{jobset.JobSetNameKey: a.js.Name},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(a.js, kind)},
		},
		Spec: corev1.ServiceSpec{
			ClusterIP:                corev1.ClusterIPNone,
			Selector:                 selector,
			PublishNotReadyAddresses: publishesNotReady(a.js),
		},
	}
	a.plan.Writes = append(a.plan.Writes, jobs.Create(service).OrWarn(jobset.HeadlessServiceCreationFailedReason))
}

// ensureSubdomainService makes sure that the subdomain has a Service. JobSets with the same subdomain share it, and it
// is garbage collected with the last of them. A headless Service made by a user is accepted if it selects the pods.
func (a *planner) ensureSubdomainService() {
	name := subdomain(a.js)
	service := a.relatedService(name)
	switch {
	case service == nil:
		a.createService(name, map[string]string{jobset.JobSetNameKey: a.js.Name})
	case !service.DeletionTimestamp.IsZero(), ownedBy(service, a.js):
	case ownedByJobSets(service):
		a.shareService(service)
	case service.Spec.ClusterIP != corev1.ClusterIPNone || !a.selectsPods(service):
		a.plan.Events = append(a.plan.Events, jobs.Warning(jobset.HeadlessServiceCreationFailedReason, fmt.Sprintf(
			"the Service %s, which would give the pods their host names, is there already, and is not headless or selects other pods:"+
				" delete it, or set spec.network.subdomain of a new JobSet to another name", name)))
	}
}

// shareService makes the Service select the pods of all JobSets that have its name as subdomain, and adds this JobSet
// as an owner.
func (a *planner) shareService(service *corev1.Service) {
	shared := service.DeepCopy()
	shared.Spec.Selector = map[string]string{muster.SubdomainLabel: service.Name}
	shared.Spec.PublishNotReadyAddresses = service.Spec.PublishNotReadyAddresses || publishesNotReady(a.js)
	shared.OwnerReferences = append(shared.OwnerReferences, metav1.OwnerReference{
		APIVersion: jobset.GroupVersion.String(), Kind: kind.Kind, Name: a.js.Name, UID: a.js.UID,
	})
	a.plan.Writes = append(a.plan.Writes, jobs.Change(service, shared))
	// Another JobSet may join at the same time, and Services that the JobSet does not control are not watched.
	a.plan.DueBy(a.seen.Now.Add(pollInterval))
}

// relatedService returns the Service of this name, whoever owns it, or nil.
func (a *planner) relatedService(name string) *corev1.Service {
	for _, service := range jobs.ChildrenOf[*corev1.Service](a.seen.Related) {
		if service.Name == name {
			return service
		}
	}
	return nil
}

// selectsPods reports whether the Service selects the pods of every replicated job.
func (a *planner) selectsPods(service *corev1.Service) bool {
	for i := range a.js.Spec.ReplicatedJobs {
		labels := a.newJob(&a.js.Spec.ReplicatedJobs[i], 0).Spec.Template.Labels
		for key, value := range service.Spec.Selector {
			if labels[key] != value {
				return false
			}
		}
	}
	return len(service.Spec.Selector) > 0
}

func ownedBy(object metav1.Object, js *jobset.JobSet) bool {
	return slices.ContainsFunc(object.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == js.UID })
}

func ownedByJobSets(object metav1.Object) bool {
	return slices.ContainsFunc(object.GetOwnerReferences(), func(o metav1.OwnerReference) bool {
		return o.APIVersion == jobset.GroupVersion.String() && o.Kind == kind.Kind
	})
}

func publishesNotReady(js *jobset.JobSet) bool {
	return js.Spec.Network == nil || ptr.Deref(js.Spec.Network.PublishNotReadyAddresses, true)
}
