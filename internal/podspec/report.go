package podspec

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/musterhq/muster/api/muster"
)

// Names of Trainer's protocol, by which training code reports its progress: to Muster as to Trainer.
const (
	reportURL   = "KUBEFLOW_TRAINER_SERVER_URL"
	reportCA    = "KUBEFLOW_TRAINER_SERVER_CA_CERT"
	reportToken = "KUBEFLOW_TRAINER_SERVER_TOKEN"
	reportDir   = "/var/run/secrets/kubeflow/trainer"
	// reportVolume is the volume with the token and the certificates.
	reportVolume = "muster-progress"
	// reportPath equals the path of protocol.ReportPath of the rendezvous, which this package must not import.
	reportPath = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/"
)

// LetReport returns the template with what containers need to report the progress of the job: all containers if the
// template asks for it, else the one with the agent. Without it the job runs all the same: a template that cannot have
// it is returned as it is. So is a container that has one of the variables already, or something else where the token
// would be.
func (a Agent) LetReport(template corev1.PodTemplateSpec, namespace, job string) corev1.PodTemplateSpec {
	asked := template.Annotations[muster.ProgressAnnotation]
	gets := func(c corev1.Container) bool {
		return (asked == "true" || asked == "" && hasAgent(&c)) && mayReport(&c)
	}
	if !a.Enabled() || a.Awaited() || hasVolume(&template.Spec, reportVolume) ||
		!slices.ContainsFunc(template.Spec.Containers, gets) {
		return template
	}
	out := *template.DeepCopy()
	url := a.reportURL(namespace, job)
	for i := range out.Spec.Containers {
		c := &out.Spec.Containers[i]
		if !gets(*c) {
			continue
		}
		c.Env = append([]corev1.EnvVar{{Name: reportURL, Value: url}, {Name: reportCA, Value: reportDir + "/ca.crt"},
			{Name: reportToken, Value: reportDir + "/token"}}, c.Env...)
		c.VolumeMounts = append(c.VolumeMounts,
			corev1.VolumeMount{Name: reportVolume, MountPath: reportDir, ReadOnly: true})
	}
	out.Spec.Volumes = append(out.Spec.Volumes, corev1.Volume{Name: reportVolume, VolumeSource: reportSources()})
	out.Annotations = Merged(out.Annotations, map[string]string{muster.ProgressAuthorityAnnotation: a.CA})
	return out
}

// TellReporters returns the template of a batch Job with where its containers report, and the certificates to trust.
// They got the variables and the volume by a policy when the Job was created, since the operator cannot add these
// later. A template without the volume is returned as it is.
func (a Agent) TellReporters(template corev1.PodTemplateSpec, namespace, job string) corev1.PodTemplateSpec {
	if !a.Enabled() || a.Awaited() || !hasVolume(&template.Spec, reportVolume) {
		return template
	}
	template.Annotations = Merged(template.Annotations, map[string]string{
		muster.ProgressURLAnnotation: a.reportURL(namespace, job), muster.ProgressAuthorityAnnotation: a.CA})
	return template
}

// reportURL returns where the containers of the job report.
func (a Agent) reportURL(namespace, job string) string {
	return "https://" + a.Server + reportPath + namespace + "/trainjobs/" + job + "/status"
}

// hasAgent reports whether the agent wraps the command of the container.
func hasAgent(c *corev1.Container) bool {
	return len(c.Command) > 0 && c.Command[0] == agentDir+"/"+agentName
}

// mayReport reports whether the variables and the token can be added to the container.
func mayReport(c *corev1.Container) bool {
	return !slices.ContainsFunc(c.Env, func(v corev1.EnvVar) bool {
		return v.Name == reportURL || v.Name == reportCA || v.Name == reportToken
	}) && !slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == reportDir })
}

// hasVolume reports whether the pod has a volume of the name.
func hasVolume(spec *corev1.PodSpec, name string) bool {
	return slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == name })
}

// reportSources returns the content of the volume. The certificates come from an annotation of the pod, so that no
// object in the job's namespace has to be made and kept.
func reportSources() corev1.VolumeSource {
	return corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{
			Audience: audience, ExpirationSeconds: ptr.To[int64](tokenSeconds), Path: "token"}},
		{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{Path: "ca.crt",
			FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1",
				FieldPath: "metadata.annotations['" + muster.ProgressAuthorityAnnotation + "']"}}}}},
	}}}
}
