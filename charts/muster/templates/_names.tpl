{{- define "muster.name" -}}
{{- default "lattice-operator" .Values.nameOverride | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "muster.account" -}}
{{- default (.Values.serviceAccount.create | ternary (include "muster.name" .) "default") .Values.serviceAccount.name -}}
{{- end -}}

{{/* The user that the API server takes the operator for. */}}
{{- define "muster.user" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ include "muster.account" . }}
{{- end -}}

{{/* The image, with a tag. Only what follows the last / may have one: before it a : is a port's. */}}
{{- define "muster.image" -}}
{{- if regexMatch "[:@]" (last (splitList "/" .Values.image)) -}}
{{ .Values.image }}
{{- else -}}
{{ .Values.image }}:{{ .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- define "muster.selector" -}}
app.kubernetes.io/name: muster
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "muster.labels" -}}
{{ include "muster.selector" . }}
app.kubernetes.io/component: operator
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* The files of the webhooks that the configuration turns on, as a list. */}}
{{- define "muster.webhooks" -}}
{{- $files := list -}}
{{- if dig "batchJob" "webhook" false .Values.config }}{{ $files = append $files "webhook/job-hold.yaml" }}{{ end -}}
{{- if dig "placement" "webhook" false .Values.config }}{{ $files = append $files "webhook/pod-places.yaml" }}{{ end -}}
{{- toYaml $files -}}
{{- end -}}
