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

// claimName is the name of the claim of a volume: one that is made has a name of its own
// unless it is given one.
func claimName(job *volcano.Job, i int) string {
	return cmp.Or(job.Spec.Volumes[i].VolumeClaimName, fmt.Sprintf("%s-volume-%d", job.Name, i))
}

// claims are those that the job makes. They belong to it.
func (l *look) claims() []jobs.Write {
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
func (l *look) mountVolumes(spec *corev1.PodSpec) {
	for i := range l.job.Spec.Volumes {
		name := fmt.Sprintf("volume-%d", i)
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claimName(l.job, i)}}})
		mount(spec, corev1.VolumeMount{Name: name, MountPath: l.job.Spec.Volumes[i].MountPath})
	}
}

// mount mounts something into all containers, those that run first too.
func mount(spec *corev1.PodSpec, m corev1.VolumeMount) {
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			list[i].VolumeMounts = append(list[i].VolumeMounts, m)
		}
	}
}

// owned is the metadata of an object of the job's own.
func (l *look) owned(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: l.job.Namespace, OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(l.job, kind)}}
}

// objects are what must be there before the pods: claims, and what plugins make. What was
// made is not made again: pods that were made since tell that it is there.
func (l *look) objects() []jobs.Write {
	var out []jobs.Write
	if !l.remembers(volumesKey) {
		out = append(out, l.claims()...)
	}
	for _, p := range l.plugins() {
		if p.objects != nil && !l.remembers(pluginKey(p.name)) {
			out = append(out, p.objects(l)...)
		}
	}
	return out
}

// Keys of status.controlledResources.
const volumesKey = "muster.dev/volumes"

func pluginKey(name string) string { return "plugin-" + name }

func (l *look) remembers(key string) bool { return l.seen.Job.Status.ControlledResources[key] != "" }

// forgetObjects has what pods need be made once more before the next of them, if it is not there any more: somebody may have deleted it,
// and pods that need it would never start.
func (l *look) forgetObjects() {
	remember(&l.job.Status, volumesKey, "")
	for _, p := range l.plugins() {
		remember(&l.job.Status, pluginKey(p.name), "")
	}
}

// rememberObjects notes, once there are pods that were made since, what was made before them.
func (l *look) rememberObjects() {
	if !slices.ContainsFunc(l.roster.Replicas, func(r replicas.Replica) bool { return r.UID() != "" }) {
		return
	}
	if len(l.claims()) > 0 {
		remember(&l.job.Status, volumesKey, "made")
	}
	for _, p := range l.plugins() {
		if p.objects != nil {
			remember(&l.job.Status, pluginKey(p.name), p.name)
		}
	}
}
