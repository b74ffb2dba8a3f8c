{{- define "tocsin.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "tocsin.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "tocsin.labels" -}}
{{ include "tocsin.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "tocsin.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{/* The part of a pod that the nodes and the job have in common. */}}
{{- define "tocsin.podSecurity" -}}
automountServiceAccountToken: false
enableServiceLinks: false # a service of this name would set TOCSIN_PORT
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
{{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "tocsin.container" -}}
image: {{ include "tocsin.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
env:
  - {name: TOCSIN_BASE_URL, value: {{ required "set baseUrl to the external URL, such as https://tocsin.example.org" .Values.baseUrl | quote }}}
  - {name: TOCSIN_TLS_TERMINATED, value: "true"}
  - {name: TOCSIN_PORT, value: "8080"}
  - {name: TOCSIN_TRUSTED_PROXIES, value: {{ join "," .Values.trustedProxies | quote }}}
  - {name: TOCSIN_PLUGINS_FILE, value: /etc/tocsin/configuration/plugins.toml}
  - {name: TOCSIN_DATABASE_URL_FILE, value: /etc/tocsin/service/database-url}
  - {name: TOCSIN_ENCRYPTION_KEY_FILE, value: /etc/tocsin/service/encryption-key}
{{- if .Values.metricsToken.existingSecret }}
  - {name: TOCSIN_METRICS_TOKEN_FILE, value: /etc/tocsin/service/metrics-token}
{{- end }}
{{- if .Values.oidcClientSecret.existingSecret }}
  - {name: TOCSIN_OIDC_CLIENT_SECRET_FILE, value: /etc/tocsin/service/oidc-client-secret}
{{- end }}
{{- range $name, $value := .Values.settings }}
  - {name: {{ $name }}, value: {{ $value | quote }}}
{{- end }}
resources: {{- toYaml .Values.resources | nindent 2 }}
volumeMounts:
  - {name: configuration, mountPath: /etc/tocsin/configuration, readOnly: true}
  - {name: service, mountPath: /etc/tocsin/service, readOnly: true}
{{- range .Values.pluginSecrets }}
  - {name: {{ printf "secret-%s" . }}, mountPath: {{ printf "/etc/tocsin/secrets/%s" . }}, readOnly: true}
{{- end }}
  - {name: data, mountPath: /var/lib/tocsin}
  - {name: temporary, mountPath: /tmp}
{{- end -}}

{{/* The volumes; `configuration` is the name of the ConfigMap. */}}
{{- define "tocsin.volumes" -}}
{{- $ := .root -}}
- name: configuration
  configMap: {name: {{ .configuration }}, defaultMode: 0440}
- name: service
  projected:
    defaultMode: 0440
    sources:
      {{- include "tocsin.secret" (list (required "set databaseUrl.existingSecret" $.Values.databaseUrl.existingSecret) $.Values.databaseUrl.key "database-url") | nindent 6 }}
      {{- include "tocsin.secret" (list (required "set encryptionKey.existingSecret" $.Values.encryptionKey.existingSecret) $.Values.encryptionKey.key "encryption-key") | nindent 6 }}
      {{- with $.Values.metricsToken.existingSecret }}
      {{- include "tocsin.secret" (list . $.Values.metricsToken.key "metrics-token") | nindent 6 }}
      {{- end }}
      {{- with $.Values.oidcClientSecret.existingSecret }}
      {{- include "tocsin.secret" (list . $.Values.oidcClientSecret.key "oidc-client-secret") | nindent 6 }}
      {{- end }}
{{- range $.Values.pluginSecrets }}
- name: {{ printf "secret-%s" . }}
  secret: {secretName: {{ . }}, defaultMode: 0440}
{{- end }}
- name: data
  emptyDir: {}
- name: temporary
  emptyDir: {medium: Memory, sizeLimit: 64Mi}
{{- end -}}

{{- define "tocsin.secret" -}}
- secret:
    name: {{ index . 0 }}
    items: [{key: {{ index . 1 }}, path: {{ index . 2 }}}]
{{- end -}}
