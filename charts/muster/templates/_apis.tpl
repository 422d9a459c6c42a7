{{/* The name of the CRD in a file. */}}
{{- define "muster.definition" -}}
{{- regexFind "\n  name: [^\n]+" . | trimPrefix "\n  name: " -}}
{{- end -}}

{{/* The owner of an object installed by others, as text. */}}
{{- define "muster.owner" -}}
{{- $labels := default dict .metadata.labels -}}
{{- $annotations := default dict .metadata.annotations -}}
{{- if get $annotations "meta.helm.sh/release-name" -}}
the Helm release {{ get $annotations "meta.helm.sh/release-name" }} in namespace {{ get $annotations "meta.helm.sh/release-namespace" }}
{{- else if or (get $labels "app.kubernetes.io/part-of") (get $labels "app.kubernetes.io/name") -}}
{{ default (get $labels "app.kubernetes.io/name") (get $labels "app.kubernetes.io/part-of") }}
{{- else if .metadata.managedFields -}}
whoever applied it as {{ (first .metadata.managedFields).manager }}
{{- else -}}
somebody else
{{- end -}}
{{- end -}}

{{/* Not empty if Volcano runs its Jobs itself: the configuration says so, or the CRD is Volcano's. */}}
{{- define "muster.volcano" -}}
{{- $mode := default "auto" (include "muster.config" . | fromYaml).volcano -}}
{{- if eq $mode "external" -}}
external
{{- else if and (eq $mode "auto") (not .Values.crds.adopt) -}}
{{- $there := lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" "jobs.batch.volcano.sh" -}}
{{- if and $there (ne (dig "metadata" "labels" "muster.dev/served" "" $there) "true") -}}
external
{{- end -}}
{{- end -}}
{{- end -}}
