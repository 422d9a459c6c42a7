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
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/pointers"
	"github.com/musterhq/muster/internal/replicas"
)

// createServices creates missing headless Services: the one of the subdomain, which gives the pods their host names,
// and, if requested, one for each replicated job.
func (p *planner) createServices() {
	if dnsHostnames(p.js) {
		p.ensureSubdomainService()
	}
	if p.js.Annotations[muster.ServicePerReplicatedJobAnnotation] != "true" {
		return
	}
	there := map[string]bool{}
	for _, service := range jobs.ChildrenOf[*corev1.Service](p.seen.Children) {
		there[service.Name] = true
	}
	for rj := range pointers.To(p.js.Spec.ReplicatedJobs) {
		name := p.js.Name + "-" + rj.Name
		if there[name] || dnsHostnames(p.js) && name == subdomain(p.js) {
			continue
		}
		p.createService(name, map[string]string{jobset.JobSetNameKey: p.js.Name, jobset.ReplicatedJobNameKey: rj.Name})
	}
}

// createService creates a headless Service. Its label makes it match the documented selector.
func (p *planner) createService(name string, selector map[string]string) {
	service := &corev1.Service{
		ObjectMeta: replicas.Owned(p.js, kind, name, map[string]string{jobset.JobSetNameKey: p.js.Name}),
		Spec: corev1.ServiceSpec{
			ClusterIP:                corev1.ClusterIPNone,
			Selector:                 selector,
			PublishNotReadyAddresses: publishesNotReady(p.js),
		},
	}
	p.plan.Add(write.Create(service).OrWarn(jobset.HeadlessServiceCreationFailedReason))
}

// ensureSubdomainService makes sure that the subdomain has a Service. JobSets with the same subdomain share it, and it
// is garbage collected with the last of them. A headless Service made by a user is accepted if it selects the pods.
func (p *planner) ensureSubdomainService() {
	name := subdomain(p.js)
	service := p.relatedService(name)
	switch {
	case service == nil:
		p.createService(name, map[string]string{jobset.JobSetNameKey: p.js.Name})
	case !service.DeletionTimestamp.IsZero(), ownedBy(service, p.js):
	case ownedByJobSets(service):
		p.shareService(service)
	case service.Spec.ClusterIP != corev1.ClusterIPNone || !p.selectsPods(service):
		p.plan.AddEvents(write.Obstacle(jobset.HeadlessServiceCreationFailedReason, fmt.Sprintf(
			"the Service %s, which would give the pods their host names, is there already, and is not headless or selects other pods:"+
				" delete it, or set spec.network.subdomain of a new JobSet to another name", name)))
	}
}

// shareService makes the Service select the pods of all JobSets that have its name as subdomain, and adds this JobSet
// as an owner.
func (p *planner) shareService(service *corev1.Service) {
	shared := service.DeepCopy()
	shared.Spec.Selector = map[string]string{muster.SubdomainLabel: service.Name}
	shared.Spec.PublishNotReadyAddresses = service.Spec.PublishNotReadyAddresses || publishesNotReady(p.js)
	shared.OwnerReferences = append(shared.OwnerReferences, metav1.OwnerReference{
		APIVersion: jobset.GroupVersion.String(), Kind: kind.Kind, Name: p.js.Name, UID: p.js.UID,
	})
	p.plan.Add(write.Change(service, shared))
	// Another JobSet may join at the same time, and Services that the JobSet does not control are not watched.
	p.plan.DueBy(p.seen.Now.Add(pollInterval))
}

// relatedService returns the Service of this name, whoever owns it, or nil.
func (v *view) relatedService(name string) *corev1.Service {
	for _, service := range jobs.ChildrenOf[*corev1.Service](v.seen.Related) {
		if service.Name == name {
			return service
		}
	}
	return nil
}

// selectsPods reports whether the Service selects the pods of every replicated job.
func (p *planner) selectsPods(service *corev1.Service) bool {
	for rj := range pointers.To(p.js.Spec.ReplicatedJobs) {
		labels := p.newJob(rj, 0).Spec.Template.Labels
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
