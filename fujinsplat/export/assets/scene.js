
// cameras and points: a small orthographic stage that turns when dragged
{
  const canvas = document.getElementById("stage");
  const data = JSON.parse(document.getElementById("stage-data").textContent);
  const context = canvas.getContext("2d");
  const middle = [0, 1, 2].map((axis) => {
    const values = data.cameras.map((camera) => camera.at[axis]).concat(data.points.map((point) => point[axis]));
    values.sort((a, b) => a - b);
    return values[values.length >> 1] || 0;
  });
  const places = data.cameras.map((camera) => camera.at).concat(data.points);
  const distances = places.map((p) => Math.hypot(...p.map((v, i) => v - middle[i]))).sort((a, b) => a - b);
  const extent = distances[Math.floor(0.95 * (distances.length - 1))] || 1; // some points are astray
  let yaw = 0.5, pitch = 0.45, zoom = 0.38;
  const place = (p) => {
    const [x, y, z] = p.map((v, i) => (v - middle[i]) / extent);
    const a = Math.cos(yaw) * x + Math.sin(yaw) * z, b = -Math.sin(yaw) * x + Math.cos(yaw) * z;
    const scale = zoom * canvas.height;
    return [canvas.width / 2 + scale * a, canvas.height / 2 + scale * (Math.cos(pitch) * y - Math.sin(pitch) * b)];
  };
  const draw = () => {
    context.clearRect(0, 0, canvas.width, canvas.height);
    data.points.forEach((point, index) => {
      const [x, y] = place(point);
      context.fillStyle = `rgb(${data.colours[index].map((c) => 60 + 0.75 * c).join(",")})`;
      context.fillRect(x, y, 2, 2);
    });
    context.lineWidth = 1.2;
    context.strokeStyle = "#6fb6ea";
    for (const camera of data.cameras) {
      const length = 0.12 * extent, [right, down, ahead] = camera.axes, [w, h] = camera.shape;
      const corner = (u, v) =>
        place(camera.at.map((c, i) => c + length * (ahead[i] + u * w * right[i] + v * h * down[i])));
      const eye = place(camera.at), corners = [corner(-1, -1), corner(1, -1), corner(1, 1), corner(-1, 1)];
      context.beginPath();
      corners.forEach((c, i) => { context.moveTo(...eye); context.lineTo(...c); context.lineTo(...corners[(i + 1) % 4]); });
      context.stroke();
    }
  };
  let last = null;
  canvas.addEventListener("pointerdown", (e) => { last = [e.clientX, e.clientY]; canvas.setPointerCapture(e.pointerId); });
  canvas.addEventListener("pointerup", () => { last = null; });
  canvas.addEventListener("pointermove", (e) => {
    if (!last) return;
    yaw += (e.clientX - last[0]) / 200;
    pitch = Math.max(-1.5, Math.min(1.5, pitch + (e.clientY - last[1]) / 200));
    last = [e.clientX, e.clientY];
    draw();
  });
  canvas.addEventListener("wheel", (e) => { e.preventDefault(); zoom *= Math.exp(-e.deltaY / 600); draw(); }, { passive: false });
  draw();
}
