pub async fn show() {}
