package vcjob

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/replicas"
)

// claimName returns the name of a volume's claim; one that is created gets a default name.
func claimName(job *volcano.Job, i int) string {
	return cmp.Or(job.Spec.Volumes[i].VolumeClaimName, fmt.Sprintf("%s-volume-%d", job.Name, i))
}

// claims returns the writes that create the job's claims, which the job owns.
func (l *planner) claims() []jobs.Write {
	var out []jobs.Write
	for i := range l.job.Spec.Volumes {
		if spec := l.job.Spec.Volumes[i].VolumeClaim; spec != nil {
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: l.owned(claimName(l.job, i)), Spec: *spec.DeepCopy()}
			out = append(out, jobs.Create(claim).OrWarn(jobs.FailedCreate))
		}
	}
	return out
}

// mountVolumes mounts the job's volumes into all containers.
func (l *planner) mountVolumes(spec *corev1.PodSpec) {
	for i := range l.job.Spec.Volumes {
		name := fmt.Sprintf("volume-%d", i)
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claimName(l.job, i)}}})
		mount(spec, corev1.VolumeMount{Name: name, MountPath: l.job.Spec.Volumes[i].MountPath})
	}
}

// mount mounts a volume into all containers, including init containers.
func mount(spec *corev1.PodSpec, m corev1.VolumeMount) {
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			list[i].VolumeMounts = append(list[i].VolumeMounts, m)
		}
	}
}

// owned returns the metadata of an object that the job owns.
func (l *planner) owned(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: l.job.Namespace, OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(l.job, kind)}}
}

// objects returns the writes of what must exist before the pods: claims, and plugin objects. They are
// created once: newer pods show that they exist.
func (l *planner) objects() []jobs.Write {
	var out []jobs.Write
	if !l.hasRecord(volumesKey) {
		out = append(out, l.claims()...)
	}
	for _, p := range l.plugins() {
		if p.objects != nil && !l.hasRecord(pluginKey(p.name)) {
			out = append(out, p.objects(l)...)
		}
	}
	return out
}

// Keys of status.controlledResources.
const volumesKey = "muster.dev/volumes"

func pluginKey(name string) string { return "plugin-" + name }

func (l *planner) hasRecord(key string) bool { return l.seen.Job.Status.ControlledResources[key] != "" }

// clearObjectRecords makes the objects that pods need be created again, before the next pods, if they are
// missing: a user may have deleted one, and pods that need it would never start.
func (l *planner) clearObjectRecords() {
	setRecord(&l.job.Status, volumesKey, "")
	for _, p := range l.plugins() {
		setRecord(&l.job.Status, pluginKey(p.name), "")
	}
}

// recordObjects records which objects were created, once newer pods exist.
func (l *planner) recordObjects() {
	if !slices.ContainsFunc(l.roster.Replicas, func(r replicas.Replica) bool { return r.UID() != "" }) {
		return
	}
	if len(l.claims()) > 0 {
		setRecord(&l.job.Status, volumesKey, "made")
	}
	for _, p := range l.plugins() {
		if p.objects != nil {
			setRecord(&l.job.Status, pluginKey(p.name), p.name)
		}
	}
}
